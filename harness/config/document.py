"""The sections of `eval.yaml` as closed, frozen, strictly typed models.

What one value must be on its own is in `values`; what values must be to each other
is in `rules`. Nothing has a default apart from the few keys that the contract
calls optional (`spec/executable-evaluator.md` 3.1, `design/interfaces.md` 4). The
text under a key is its line in the reference.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.config.values import (
    BaseUrl,
    Count,
    Digest,
    EnvironmentName,
    Modes,
    NoHeldOut,
    NoTranslation,
    Parallel,
    Positive,
    Revision,
    SameTaskIds,
    Seconds,
    Share,
    Text,
    Token,
    Trials,
)

SCHEMA_VERSION: Final = "1"


class Closed(BaseModel):
    """Base of every section: no unknown key, no coercion, no change afterwards."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False
    )


class SourceOracle(Closed):
    """Where the live oracle of an executable run is."""

    kind: Literal["python", "endpoint"]
    """A backend in Python, or an HTTP endpoint of the pack."""
    pack_manifest: Text
    """The pack's manifest file."""
    resource: Text


class EvalSection(Closed):
    """What is measured, and how often each task is asked."""

    mode: Modes
    """In canonical order, whatever the order in the file."""
    trials: Trials


class ScoringRules(Closed):
    """Every switch of the scoring contract."""

    argument_matching: Literal["schema_then_canonical", "canonical_only"]
    """Whether arguments meet the tool's schema before they are compared."""
    insert_declared_defaults: bool
    """Whether a declared default counts as written on both sides."""
    respect_call_order: bool
    """Whether the order of calls is judged."""
    respect_call_group: bool
    """Whether the size of a group of parallel calls is judged."""
    allow_llm_repair: bool
    """Whether a model may mend a call; never for a published score."""
    task_success: Literal["all_applicable_gates", "assertions_only"]
    """What a task has to pass."""
    intermediate_text_matching: Literal["structural", "verbatim"] = "structural"
    """How a text turn is compared; `structural` when left out."""
    attribution: Literal["wire-1", "strict-002"]


class ScoringSection(ScoringRules):
    """The rules and the document that states them."""

    contract: Text


class WorkerLimitsSection(Closed):
    """Resource limits of one oracle worker (rlimits, and the cap of its output)."""

    cpu_s: Positive
    """Processor time in seconds."""
    memory_bytes: Positive
    """Address space of one process."""
    open_files: Positive
    """Open descriptors of one process."""
    processes: Positive
    """Processes of the user; recorded as not enforced for root."""
    file_bytes: Positive
    """Size of one written file."""
    output_bytes: Positive
    """What is kept of a worker's printed output."""


class LimitsSection(Closed):
    """Deadlines in seconds, and the bounds of one run."""

    max_turns: Positive
    """Longest script, in assistant turns, that is asked at all."""
    import_timeout_s: Seconds
    """Import of the pack."""
    reset_timeout_s: Seconds
    """Start of one session."""
    tool_timeout_s: Seconds
    """One tool call."""
    state_timeout_s: Seconds
    """One reading of the state."""
    assertion_timeout_s: Seconds
    """One assertion."""
    close_timeout_s: Seconds
    """End of one session."""
    candidate_timeout_s: Seconds
    """One model turn, all its attempts together."""
    episode_timeout_s: Seconds
    """One episode, everything in it together."""
    max_parallel_tasks: Parallel
    max_retries: Count
    max_stops: Count
    """The run gives up when more non-candidate stops than this have happened."""
    worker: WorkerLimitsSection


class IsolationSection(Closed):
    """How far pack code is fenced in."""

    level: Literal["process", "confined", "namespaces"]
    host: Literal["shared", "per_task"]


class ApiSection(Closed):
    """Where the candidate answers."""

    base_url: BaseUrl
    """The address before `/chat/completions`."""
    api_key_env: EnvironmentName | None
    """Name of the environment variable with the key; None: no Authorization."""


class ModelIdentity(Closed):
    """Which weights answer, as far as anybody can say."""

    source: Text
    """Where the weights are named, such as a hub or a provider."""
    model: Text
    """The model's name there."""
    revision: Revision | None = None
    """A full commit hash; never a branch or tag that can move."""
    weights_digest: Digest | None = None
    """A content hash of the weights."""

    @property
    def is_pinned(self) -> bool:
        """Tell whether the same identity always means the same weights."""
        return self.weights_digest is not None or self.revision is not None

    @property
    def canonical_id(self) -> str:
        """The identity as `source:model@pin`."""
        pin = self.weights_digest or self.revision or "provider_managed"
        return f"{self.source}:{self.model}@{pin}"


class InferenceSection(Closed):
    """Decoding as requested."""

    temperature: Annotated[float, Field(ge=0)]
    """Sent as it stands."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None
    """None, legal at temperature 0 only, leaves the key out of the request."""
    max_tokens: Positive
    """Most tokens of one answer."""
    seed: int | None = None
    """Sent when it is given."""
    tool_choice: Literal["auto", "required", "none"]
    """Sent as it stands."""
    provider_extensions: dict[str, dict[str, Any]] = Field(default_factory=dict)


class CandidateSection(Closed):
    """One model under test."""

    alias: Token
    """The name in reports and keys."""
    model: Text
    provider: Token
    """Who serves the model."""
    provider_api_version: Token
    """Which form of that provider's interface is spoken."""
    api: ApiSection
    model_identity: ModelIdentity
    inference: InferenceSection
    echo_reasoning: bool

    @property
    def canonical_id(self) -> str:
        """The model's identity as one text."""
        return self.model_identity.canonical_id

    def endpoint(self) -> dict[str, Any]:
        """Return what a candidate client needs, by the names of its Endpoint."""
        return {
            "alias": self.alias,
            "canonical_id": self.canonical_id,
            "provider": self.provider,
            "provider_api_version": self.provider_api_version,
            "base_url": self.api.base_url,
            "model": self.model,
            "api_key_env": self.api.api_key_env,
            "inference": self.inference.model_dump(mode="json"),
            "echo_reasoning": self.echo_reasoning,
        }


class ContaminationSection(Closed):
    """What happens to a candidate that has read the benchmark."""

    enforce: bool
    """Whether exposure is acted on."""
    on_violation: Literal["fail_run", "exclude_row"]
    """Refuse the run, or leave exposed rows out."""
    comparison_set: Literal["common_intersection", "per_candidate"]
    """One set of tasks for all candidates, or one for each."""


class PublicationSection(Closed):
    """Whether the score is meant to be published, and within which bounds."""

    requested: bool
    """Whether the score is meant to be published; sets the locks."""
    require_same_task_ids: SameTaskIds
    """All candidates are asked the same tasks."""
    max_stop_share: Share
    """Largest share of non-candidate stops under which a score is published."""


class OutputFlags(Closed):
    """Which artifacts a run writes."""

    write_task_results: bool
    """The table with one row for each episode."""
    write_eval_manifest: bool
    """The manifest that binds all artifacts; no run goes without."""
    cache_candidate_responses: bool
    """The log of requests and responses; no run goes without."""
    cache_tool_results: bool
    """The log of executable episodes; no executable run goes without."""


class OutputsSection(OutputFlags):
    """The flags, and the folder that they are written to."""

    output_dir: Text


Candidates = Annotated[tuple[CandidateSection, ...], Field(strict=False, min_length=1)]


class EvalDocument(Closed):
    """The whole file, kind `executable`."""

    schema_version: Literal["1"]
    """Version of this set of keys."""
    config_status: Literal["ready"]
    """Says that the file is complete."""
    kind: Literal["executable"]
    """Which set of keys the file has."""
    source_run_manifest: Text
    source_oracle: SourceOracle | None
    translation_manifest: NoTranslation
    eval: EvalSection
    held_out_eval: NoHeldOut = None
    scoring: ScoringSection
    limits: LimitsSection
    isolation: IsolationSection
    candidates: Candidates
    contamination: ContaminationSection
    publication: PublicationSection
    outputs: OutputsSection
