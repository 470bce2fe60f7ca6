"""The sections of `eval.yaml` as closed, frozen, strictly typed models.

Field types hold what one value must be on its own; what values must be to each
other is in `rules`. Nothing has a default apart from the few keys that the contract
calls optional (`spec/executable-evaluator.md` 3.1, `design/interfaces.md` 4). An
error type that is a cause code becomes the code of the violation.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

SCHEMA_VERSION: Final = "1"
MODES: Final = ("trace", "executable", "held_out_eval")
ALIAS_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_HEX_REVISION = re.compile(r"[0-9a-fA-F]{40,64}")
_DIGEST = re.compile(r"(sha256|bfcl-weight-manifest-v1):[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MUTABLE: Final = frozenset(
    [
        "main",
        "master",
        "head",
        "latest",
        "dev",
        "devel",
        "develop",
        "trunk",
        "stable",
        "nightly",
        "edge",
        "tip",
        "current",
        "default",
        "release",
        "prod",
        "production",
    ]
)
_MUTABLE_PREFIXES: Final = ("refs/heads/", "refs/remotes/")
RESERVED_BODY_KEYS: Final = frozenset(
    [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
    ]
)


def _wrong(code: str, problem: str, expected: str) -> PydanticCustomError:
    """Build an error that carries its own code and what was expected."""
    context = {"problem": problem, "want": expected}
    return PydanticCustomError(code, "{problem}", context)


def _text(value: str) -> str:
    if not value or value != value.strip() or _CONTROL.search(value):
        raise _wrong(
            "eval_config_invalid",
            "a text is empty, padded or holds control characters",
            "a non-empty text on one line without spaces around it",
        )
    return value


def _base_url(value: str) -> str:
    expected = "http:// or https://, a host, an optional port and path; nothing else"
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _wrong("eval_config_invalid", "base_url is no URL", expected) from None
    plain = not re.search(r"[\s\x00-\x1f\x7f\\]", value)
    if not plain or parts.scheme not in {"http", "https"} or not host:
        raise _wrong("eval_config_invalid", "base_url is no HTTP endpoint", expected)
    if "@" in parts.netloc:
        raise _wrong("secret_in_eval_config", "base_url holds user info", expected)
    if "?" in value or "#" in value:
        raise _wrong(
            "eval_config_invalid", "base_url holds a query or a fragment", expected
        )
    return value.rstrip("/")


def is_pinning_revision(revision: str | None) -> bool:
    """Tell whether a revision is a full commit hash (40 to 64 hex digits)."""
    return revision is not None and _HEX_REVISION.fullmatch(revision) is not None


def _revision(value: str) -> str:
    name = value.casefold()
    if name in _MUTABLE or name.startswith(_MUTABLE_PREFIXES):
        raise _wrong(
            "candidate_revision_mutable",
            "a branch name or floating tag can point elsewhere tomorrow",
            "the full commit hash, 40 to 64 hex digits",
        )
    return value


def _digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise _wrong(
            "candidate_identity_invalid",
            "a weights digest has another form",
            "`sha256:` or `bfcl-weight-manifest-v1:` and 64 lower-case hex digits",
        )
    return value


def _modes(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) != len(value):
        raise _wrong("eval_config_invalid", "a mode repeats", "each mode at most once")
    return tuple(sorted(value, key=MODES.index))


def _supported_mode(value: object) -> object:
    if value == "held_out_eval":
        raise _unsupported("held-out evaluation")
    return value


def _unsupported(what: str) -> PydanticCustomError:
    return _wrong(
        "unsupported_eval_mode", f"{what} is not supported", "null, or no such key"
    )


def _no_held_out(value: object) -> object:
    if value is not None:
        raise _unsupported("held-out evaluation")
    return value


def _no_translation(value: object) -> object:
    if value is not None:
        raise _unsupported("a translated benchmark")
    return value


def _same_task_ids(value: object) -> object:
    if value is False:
        raise _wrong(
            "eval_publication_policy_violation",
            "candidates scored on different tasks cannot stand in one table",
            "true",
        )
    return value


Text = Annotated[str, AfterValidator(_text)]
Revision = Annotated[str, AfterValidator(_revision), AfterValidator(_text)]
Token = Annotated[str, StringConstraints(pattern=ALIAS_PATTERN)]
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Mode = Annotated[Literal["trace", "executable"], BeforeValidator(_supported_mode)]


class Closed(BaseModel):
    """Base of every section: no unknown key, no coercion, no change afterwards."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False
    )


class SourceOracle(Closed):
    """Where the live oracle of an executable run is."""

    kind: Literal["python", "endpoint"]
    pack_manifest: Text
    resource: Text


class EvalSection(Closed):
    """What is measured, and how often each task is asked."""

    mode: Annotated[
        tuple[Mode, ...], Field(strict=False, min_length=1), AfterValidator(_modes)
    ]
    """In canonical order, whatever the order in the file."""
    trials: Positive


class ScoringRules(Closed):
    """Every switch of the scoring contract."""

    argument_matching: Literal["schema_then_canonical", "canonical_only"]
    insert_declared_defaults: bool
    respect_call_order: bool
    respect_call_group: bool
    allow_llm_repair: bool
    task_success: Literal["all_applicable_gates", "assertions_only"]
    intermediate_text_matching: Literal["structural", "verbatim"] = "structural"
    attribution: Literal["wire-1", "strict-002"]


class ScoringSection(ScoringRules):
    """The rules and the document that states them."""

    contract: Text


class WorkerLimitsSection(Closed):
    """Resource limits of one oracle worker (rlimits, and the cap of its output)."""

    cpu_s: Positive
    memory_bytes: Positive
    open_files: Positive
    processes: Positive
    file_bytes: Positive
    output_bytes: Positive


class LimitsSection(Closed):
    """Deadlines in seconds, and the bounds of one run."""

    max_turns: Positive
    import_timeout_s: Seconds
    reset_timeout_s: Seconds
    tool_timeout_s: Seconds
    """One tool call."""
    state_timeout_s: Seconds
    assertion_timeout_s: Seconds
    close_timeout_s: Seconds
    candidate_timeout_s: Seconds
    """One model turn, all its attempts together."""
    episode_timeout_s: Seconds
    max_parallel_tasks: Positive
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

    base_url: Annotated[str, AfterValidator(_base_url)]
    api_key_env: EnvironmentName | None
    """Name of the environment variable with the key; None: no Authorization."""


class ModelIdentity(Closed):
    """Which weights answer, as far as anybody can say."""

    source: Text
    model: Text
    revision: Revision | None = None
    weights_digest: Annotated[str, AfterValidator(_digest)] | None = None

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
    top_p: Annotated[float, Field(gt=0, le=1)] | None
    """None, legal at temperature 0 only, leaves the key out of the request."""
    max_tokens: Positive
    seed: int | None = None
    tool_choice: Literal["auto", "required", "none"]
    provider_extensions: dict[str, dict[str, Any]] = Field(default_factory=dict)


class CandidateSection(Closed):
    """One model under test."""

    alias: Token
    model: Text
    provider: Token
    provider_api_version: Token
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
    on_violation: Literal["fail_run", "exclude_row"]
    comparison_set: Literal["common_intersection", "per_candidate"]


class PublicationSection(Closed):
    """Whether the score is meant to be published, and within which bounds."""

    requested: bool
    require_same_task_ids: Annotated[bool, AfterValidator(_same_task_ids)]
    max_stop_share: Share
    """Largest share of non-candidate stops under which a score is published."""


class OutputFlags(Closed):
    """Which artifacts a run writes."""

    write_task_results: bool
    write_eval_manifest: bool
    cache_candidate_responses: bool
    cache_tool_results: bool


class OutputsSection(OutputFlags):
    """The flags, and the folder that they are written to."""

    output_dir: Text


Candidates = Annotated[tuple[CandidateSection, ...], Field(strict=False, min_length=1)]


class EvalDocument(Closed):
    """The whole file, kind `executable`."""

    schema_version: Literal["1"]
    config_status: Literal["ready"]
    kind: Literal["executable"]
    source_run_manifest: Text
    source_oracle: SourceOracle | None
    translation_manifest: Annotated[None, BeforeValidator(_no_translation)]
    eval: EvalSection
    held_out_eval: Annotated[None, BeforeValidator(_no_held_out)] = None
    scoring: ScoringSection
    limits: LimitsSection
    isolation: IsolationSection
    candidates: Candidates
    contamination: ContaminationSection
    publication: PublicationSection
    outputs: OutputsSection
