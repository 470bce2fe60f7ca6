"""What every engine of single-turn predictions takes, gives back and owns up to.

An engine answers rows, each a list of chat messages, under one decoding. It says
beforehand which settings it cannot apply, and afterwards what it applied as far as it
can read that back; what it cannot tell is `UNKNOWN`, never assumed. Raw text is handed
on as it was decoded, before anything is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

from harness.canonical import Json

UNKNOWN: Final = "unknown"
"""Stands for what an engine cannot tell of itself."""

CONTEXT_OVERFLOW: Final = "context_overflow"
OUT_OF_MEMORY: Final = "oom"


@dataclass(frozen=True, slots=True)
class Decoding:
    """How text is drawn from a model, in full; nothing is left to an engine."""

    max_tokens: int
    temperature: float
    top_p: float
    top_k: int | None
    stop: tuple[str, ...]
    seed: int | None
    greedy: bool
    num_beams: int
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    no_repeat_ngram_size: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """One setting that an engine cannot apply, with its reason."""

    engine: str
    setting: str
    requested: Json
    reason: str


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One row to answer."""

    row_id: str
    messages: tuple[Mapping[str, str], ...]
    """Chat messages with `role` and `content`, in order."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What came of one row: a text, or the code of what prevented it.

    Counts are None where the engine does not report them. `generated_tokens` includes
    the end token. Times are seconds on the monotonic clock of the engine.
    """

    row_id: str
    text: str | None
    finish_reason: str | None
    """`stop`, `length` or what else the engine says; None for a failed row."""
    failure: str | None
    """`context_overflow`, `oom` or a cause code; None for an answered row."""
    prompt_tokens: int | None
    generated_tokens: int | None
    elapsed_s: float | None
    conditions: Mapping[str, Json] = field(default_factory=dict)
    """What was observed on this very row: served model, fingerprint, device, dtype."""
    applied: Mapping[str, Json] | None = None
    """Settings as this row's answer states them; None: see the engine's `applied`."""
    stopped: bool = False
    """Failed for a reason that is not the model's: no answer, it may be asked again."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure with the words of what it measures; `value` None: not measured."""

    name: str
    value: float | int | None
    unit: str
    boundary: str


class Engine(Protocol):
    """One way to get text for rows; an async context manager that loads and frees."""

    @property
    def name(self) -> str:
        """The kind of engine: `chat_http`, `torch_local`, `vllm_server`, ..."""

    @property
    def measures_fresh(self) -> bool:
        """Whether `measure` is for an engine that has answered nothing yet.

        False: it reads figures off the answers that there are.
        """

    def refusals(self, decoding: Decoding) -> tuple[Refusal, ...]:
        """Return every setting that cannot be applied; loads and sends nothing."""

    async def __aenter__(self) -> Self:
        """Load or start; raises EngineError where that fails."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Free or stop everything that was started."""

    async def generate(
        self,
        rows: Sequence[PromptRow],
        decoding: Decoding,
        take: Callable[[Generation], None],
    ) -> None:
        """Answer every row once, in whatever order, handing on each as it comes."""

    def applied(self) -> Mapping[str, Json]:
        """Return every setting as applied, `UNKNOWN` where that cannot be read."""

    def conditions(self) -> Mapping[str, Json]:
        """Return what this process knows of the runtime: engine, versions, device."""

    async def measure(
        self, rows: Sequence[PromptRow], decoding: Decoding
    ) -> tuple[Measurement, ...]:
        """Time first tokens cold and warm, tokens a second and peak memory."""
