"""The sections of a `predict` config as closed, frozen, strictly typed models.

Single-turn predictions: one manifest, one prompt, one engine that answers, and
comparators beside it. What one value must be on its own stands here; what values must
be to each other is in `predict_rules`. The text under a key is its line in the
reference.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from harness.config.document import Closed
from harness.config.values import (
    BaseUrl,
    Count,
    EnvironmentName,
    Parallel,
    Positive,
    Seconds,
    Share,
    Text,
    Token,
)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Device = Annotated[str, StringConstraints(pattern=r"^(cpu|cuda(:[0-9]{1,3})?)$")]
Dtype = Literal["float32", "bfloat16", "float16"]
Contract = Literal["action-ir", "json-records", "classification"]
Penalty = Annotated[float, Field(ge=-2, le=2)]


class PredictManifest(Closed):
    """The rows to answer, and the rules that they are scored by."""

    path: Text
    """JSON lines: Action IR's own manifest, or rows with `id`, `input` and `gold`."""
    sha256: Sha256 | None
    """Refuse any other file, before anything of it is read."""
    contract: Contract
    """Which scoring contract judges the answers."""
    declaration: Text | None
    """The JSON Schema of `json-records` or the JSON array of labels of
    `classification`; null for `action-ir`, whose rows carry their tools."""


class PromptSection(Closed):
    """What a row is turned into; both texts are kept with their hashes."""

    system: Text | None
    """File with the system message; `{contract}` in it is replaced by the schema or
    the labels. null: no system message."""
    user: Text | None
    """File with the user message; `{input}` in it is replaced by the row's input. null:
    the input as it stands."""


class DecodingSection(Closed):
    """How text is drawn from a model, in full; what an engine cannot apply is
    refused."""

    max_tokens: Positive
    """Most tokens of one answer."""
    temperature: Annotated[float, Field(ge=0)]
    """0 where nothing is drawn by chance."""
    top_p: Annotated[float, Field(gt=0, le=1)]
    """1: all of the distribution."""
    top_k: Positive | None
    """null: no such cut."""
    stop: Annotated[tuple[str, ...], Field(strict=False)]
    """Texts that end an answer; `[]` for none."""
    seed: int | None
    """null: none is sent or set."""
    greedy: bool
    """Whether always the likeliest token is taken."""
    num_beams: Positive
    """1: no beam search."""
    presence_penalty: Penalty
    """0: none."""
    frequency_penalty: Penalty
    """0: none."""
    repetition_penalty: Annotated[float, Field(gt=0)]
    """1: none."""
    no_repeat_ngram_size: Count
    """0: nothing is forbidden."""


class PredictEvaluation(Closed):
    """What the answers are judged for."""

    metric: Text | None
    """The primary metric, from the contract's list; null: the contract's default."""
    holdout: bool
    """Whether the rows are a holdout, whose uses are counted."""
    max_stop_share: Share
    """Largest share of rows without an answer for reasons that are not the model's,
    under which anything is scored."""


class ChatEndpoint(Closed):
    """Where a model answers over HTTP, and which model it is said to be."""

    alias: Token
    """The name in reports and keys."""
    canonical_id: Text
    """Which weights answer, as `source:model@revision-or-digest`."""
    provider: Token
    """Who serves the model."""
    provider_api_version: Token
    """Which form of that provider's interface is spoken."""
    base_url: BaseUrl
    """The address before `/chat/completions` or `/embeddings`."""
    model: Text
    """The name in the request."""
    api_key_env: EnvironmentName | None
    """Name of the environment variable with the key; null: no Authorization."""
    provider_extensions: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """More body fields, under `<provider>.<provider_api_version>`."""


class ChatHttpSection(Closed):
    """Any OpenAI-compatible chat endpoint."""

    kind: Literal["chat_http"]
    candidate: ChatEndpoint
    max_in_flight: Parallel
    """Requests in flight at once."""
    timeout_s: Seconds
    """One row, all its attempts together."""
    max_retries: Count
    """More attempts while no completion exists."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Under which name the endpoint takes the cap of tokens."""


class EmbeddingsHttpSection(Closed):
    """Any OpenAI-compatible `/embeddings` endpoint, for comparators of kind
    `embedding`."""

    kind: Literal["embeddings_http"]
    candidate: ChatEndpoint
    batch_size: Parallel
    """Texts in one request."""
    timeout_s: Seconds
    """One request, all its attempts together."""
    max_retries: Count
    """More attempts while no vectors came."""


class TorchLocalSection(Closed):
    """A checkpoint in this process, through transformers; greedy only."""

    kind: Literal["torch_local"]
    model: Text
    """Folder of the checkpoint, from the config's own folder."""
    checkpoint_sha256: dict[str, Sha256] | None
    """File name to hash, compared before anything is loaded; null: none declared."""
    device: Device
    """Where weights lie and are computed."""
    dtype: Dtype
    """Weights are loaded and computed so."""
    batch_size: Parallel
    """Rows that are answered at once."""
    model_identity: Text
    """Which weights these are, as `source:model@revision-or-digest`."""
    chat_template: bool
    """false: the user message is the whole prompt, as it stands."""


class VllmServerSection(Closed):
    """A server that is started, watched and stopped; its log is kept."""

    kind: Literal["vllm_server"]
    model: Text
    """What the server serves, as its command line takes it."""
    model_identity: Text
    """Which weights these are, as `source:model@revision-or-digest`."""
    checkpoint_sha256: dict[str, Sha256] | None
    """File name to hash, compared before the server starts; null: none declared."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    """`auto`: what vLLM chooses; another server is not told."""
    arguments: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Added to vLLM's command line; not used with `command`."""
    command: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] | None
    """Another server's whole command line, `{port}` and `{model}` are replaced;
    null: vLLM's."""
    port: Annotated[int, Field(gt=0, lt=65536)] | None
    """null: any free one."""
    health_path: Text = "/health"
    """Answers 200 when the server is ready."""
    start_timeout_s: Seconds
    """From the start to the first healthy answer."""
    stop_timeout_s: Seconds
    """From the request to end to the kill."""
    max_in_flight: Parallel
    """Requests in flight at once."""
    timeout_s: Seconds
    """One row, all its attempts together."""
    max_retries: Count
    """More attempts while no completion exists."""


class VllmOfflineSection(Closed):
    """vLLM in this process, where it is installed."""

    kind: Literal["vllm_offline"]
    model: Text
    """Folder of the checkpoint, from the config's own folder."""
    model_identity: Text
    """Which weights these are, as `source:model@revision-or-digest`."""
    checkpoint_sha256: dict[str, Sha256] | None
    """File name to hash, compared before anything is loaded; null: none declared."""
    dtype: Dtype
    """Weights are loaded and computed so."""
    batch_size: Parallel
    """Rows in one call; answers are recorded after each."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `vllm.LLM`, such as `max_model_len`."""


EngineSection = (
    ChatHttpSection
    | EmbeddingsHttpSection
    | TorchLocalSection
    | VllmServerSection
    | VllmOfflineSection
)
ENGINE_SECTIONS: Final[dict[str, type[EngineSection]]] = {
    "chat_http": ChatHttpSection,
    "torch_local": TorchLocalSection,
    "vllm_server": VllmServerSection,
    "vllm_offline": VllmOfflineSection,
    "embeddings_http": EmbeddingsHttpSection,
}
"""The keys of an engine by its kind."""
EMBEDDING_KINDS: Final = ("embeddings_http", "torch_local")
"""Kinds of engines that give vectors."""


class EngineComparator(Closed):
    """Another model, or the same one under another system message."""

    name: Token
    """Its name in the record and in file names."""
    kind: Literal["engine"]
    engine: Token
    """Which of `engines` answers."""
    system: Text | None
    """File with its own system message; null: the candidate's."""


class EmbeddingComparator(Closed):
    """A baseline without generation: the nearest text by its embedding."""

    name: Token
    """Its name in the record and in file names."""
    kind: Literal["embedding"]
    engine: Token
    """Which of `engines` gives the vectors."""
    train: Text | None
    """Training rows in the manifest's form, whose gold is the answer; null for
    `classification`, where the labels themselves are embedded."""


ComparatorSection = EngineComparator | EmbeddingComparator
COMPARATOR_SECTIONS: Final[dict[str, type[ComparatorSection]]] = {
    "engine": EngineComparator,
    "embedding": EmbeddingComparator,
}


class MeasureSection(Closed):
    """Whether speed and memory are measured, on the first rows."""

    rows: Positive
    """How many rows, from the first, are measured."""


class PredictDocument(Closed):
    """The whole file, kind `predict`."""

    schema_version: Literal["1"]
    """Version of this set of keys."""
    kind: Literal["predict"]
    """Which set of keys the file has."""
    manifest: PredictManifest
    prompt: PromptSection
    engine: Token
    """Which of `engines` answers; `--engine` names another one."""
    engines: Annotated[dict[Token, Any], Field(min_length=1)]
    """Engines by name; the keys of each follow from its kind."""
    decoding: DecodingSection
    evaluation: PredictEvaluation
    comparators: Annotated[tuple[Any, ...], Field(strict=False)]
    """Baselines beside the candidate; `[]` for none."""
    measure: MeasureSection | None
    """null: nothing is measured."""
