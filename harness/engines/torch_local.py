"""`torch_local`: a checkpoint in this process, through transformers, greedy only.

Rows are batched by (token length, id), so that a batch holds prompts of nearly one
length; whoever takes the answers brings them into another order. A batch that does not
fit into memory is halved until one row is left, and that row then fails alone. Batches
run in a thread, so that an interrupt is heard and ends a batch at its next token.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from harness.canonical import Json
from harness.engines.decoding_rules import TORCH_LOCAL, refusals_of
from harness.engines.measuring import (
    LOAD,
    first_token_figures,
    own_peak_memory,
    rate_figure,
)
from harness.engines.protocol import (
    CONTEXT_OVERFLOW,
    OUT_OF_MEMORY,
    UNKNOWN,
    Decoding,
    Generation,
    Measurement,
    PromptRow,
    Refusal,
)
from harness.engines.runtime_versions import operating_system, runtime_versions
from harness.engines.torch_checkpoint import TorchSettings, verified_files
from harness.engines.torch_loading import load_model
from harness.engines.torch_model import (
    Effective,
    MemoryExhaustedError,
    Tokens,
    TorchModel,
)
from harness.engines.torch_readback import applied_decoding, other_processors
from harness.errors import EngineError

_T = TypeVar("_T")
_Prompt = tuple[PromptRow, Tokens]

START_BOUNDARY = (
    "wall time of generating one token for one row, prefill included, tokenising and "
    "loading excluded"
)
RATE_BOUNDARY = (
    "generated tokens (end token included) by the wall time of generating the whole "
    "answer of one row, prefill included"
)


class TorchLocal:
    """Greedy answers of one checkpoint; loads on entry and frees on exit."""

    def __init__(self, settings: TorchSettings) -> None:
        self.settings = settings
        self.checkpoint_sha256: Mapping[str, str] = {}
        """Every file that may have been loaded, once the engine is entered."""
        self._model: TorchModel | None = None
        self._last: tuple[Effective | None, int | None] = (None, None)
        self._observed: Mapping[str, Json] = {"device": UNKNOWN}
        # Work of the model is never done by two threads at once.
        self._one_at_a_time = anyio.CapacityLimiter(1)

    @property
    def name(self) -> str:
        """The kind of engine."""
        return TORCH_LOCAL

    @property
    def model(self) -> TorchModel:
        """The loaded model; the engine has to be entered."""
        if self._model is None:
            raise RuntimeError("the engine is used outside its `async with` block")
        return self._model

    @property
    def measures_fresh(self) -> bool:
        """The first token is cold only before any other answer."""
        return True

    def refusals(self, decoding: Decoding) -> tuple[Refusal, ...]:
        """Return every setting that greedy decoding here cannot apply."""
        return refusals_of(self.name, decoding)

    async def __aenter__(self) -> Self:
        self.checkpoint_sha256 = verified_files(
            self.settings.model, self.settings.checkpoint_sha256
        )
        self._model = await self._in_thread(lambda _: load_model(self.settings))
        self._observed = self._model.observed_conditions()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._model is not None:
            self._last = self._seen()
            self._model.release()
            self._model = None

    async def generate(
        self,
        rows: Sequence[PromptRow],
        decoding: Decoding,
        take: Callable[[Generation], None],
    ) -> None:
        """Answer every row; raises EngineError where the library breaks down."""
        fitting: list[_Prompt] = []
        for row in rows:
            prompt = self.model.prompt_tokens(row)
            if self._overflows(prompt, decoding):
                take(self._failed(row, prompt, CONTEXT_OVERFLOW, 0.0))
            else:
                fitting.append((row, prompt))
        for batch in batches(
            fitting, self.settings.batch_size, _padding_free(decoding)
        ):
            await self._answer(batch, decoding, take)

    async def _answer(
        self,
        batch: Sequence[_Prompt],
        decoding: Decoding,
        take: Callable[[Generation], None],
    ) -> None:
        prompts = [prompt for _, prompt in batch]
        started = time.perf_counter()
        try:
            answers = await self._continuations(prompts, decoding)
        except MemoryExhaustedError:
            answers = None
        elapsed_s = time.perf_counter() - started
        if answers is not None:
            for (row, prompt), tokens in zip(batch, answers, strict=True):
                take(self._answered(row, prompt, tokens, elapsed_s))
        elif len(batch) == 1:
            take(self._failed(*batch[0], OUT_OF_MEMORY, elapsed_s))
        else:
            middle = len(batch) // 2
            await self._answer(batch[:middle], decoding, take)
            await self._answer(batch[middle:], decoding, take)

    def _overflows(self, prompt: Tokens, decoding: Decoding) -> bool:
        limit = self.model.context_tokens
        return limit is not None and len(prompt) + decoding.max_tokens > limit

    def _answered(
        self, row: PromptRow, prompt: Tokens, tokens: Tokens, elapsed_s: float
    ) -> Generation:
        ended = bool(tokens) and tokens[-1] in self.model.end_tokens
        return Generation(
            row.row_id,
            self.model.decode(tokens),
            "stop" if ended else "length",
            None,
            len(prompt),
            len(tokens),
            elapsed_s,
            self.model.row_conditions(),
        )

    def _failed(
        self, row: PromptRow, prompt: Tokens, failure: str, elapsed_s: float
    ) -> Generation:
        return Generation(
            row.row_id,
            None,
            None,
            failure,
            len(prompt),
            0,
            elapsed_s,
            self.model.row_conditions(),
        )

    async def _continuations(
        self, prompts: Sequence[Tokens], decoding: Decoding
    ) -> list[Tokens]:
        model = self.model
        return await self._in_thread(
            lambda stop: model.continuations(prompts, decoding, stop)
        )

    async def _in_thread(self, work: Callable[[threading.Event], _T]) -> _T:
        """Run `work` in a thread; being cancelled, ask it to stop and wait for it."""
        stop = threading.Event()

        async def ask_when_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                stop.set()

        failure: EngineError | MemoryExhaustedError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(ask_when_cancelled)
            try:
                result = await anyio.to_thread.run_sync(
                    work, stop, limiter=self._one_at_a_time
                )
            except (EngineError, MemoryExhaustedError) as error:
                # Raised below: a group would wrap it.
                failure = error
            # A batch that was asked to stop is cut: it must not pass for an answer.
            await anyio.lowlevel.checkpoint_if_cancelled()
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return result

    def applied(self) -> Mapping[str, Json]:
        """Return what `generate` used, seen from inside; `UNKNOWN` before it ran."""
        return applied_decoding(*self._seen())

    def conditions(self) -> Mapping[str, Json]:
        """Return library, versions and what was read off the loaded model."""
        return {
            "engine": self.name,
            "engine_impl": "transformers",
            "model_identity": self.settings.model_identity,
            "os": operating_system(),
            "versions": runtime_versions(),
            **self._observed,
            "other_processors": other_processors(self._seen()[0]),
        }

    def _seen(self) -> tuple[Effective | None, int | None]:
        """Return what the newest `generate` used, and the seed that was given."""
        if self._model is None:
            return self._last
        return self._model.effective, self._model.seed

    async def measure(
        self, rows: Sequence[PromptRow], decoding: Decoding
    ) -> tuple[Measurement, ...]:
        """Time the rows one by one, in their order; rows that fail are left out."""
        first_s: list[float] = []
        whole: list[tuple[int, float]] = []
        for row in rows:
            prompt = self.model.prompt_tokens(row)
            if self._overflows(prompt, decoding):
                continue
            try:
                _, seconds = await self._timed(prompt, replace(decoding, max_tokens=1))
                tokens, whole_s = await self._timed(prompt, decoding)
            except MemoryExhaustedError:
                continue
            first_s.append(seconds)
            whole.append((len(tokens), whole_s))
        return (
            *first_token_figures(first_s, START_BOUNDARY),
            rate_figure(whole, RATE_BOUNDARY),
            own_peak_memory(),
            *self.model.device_peak_memory(),
            Measurement(
                LOAD,
                self.model.load_s,
                "s",
                "wall time of importing the library and loading tokenizer and weights",
            ),
        )

    async def _timed(self, prompt: Tokens, decoding: Decoding) -> tuple[Tokens, float]:
        self.model.wait_for_device()
        started = time.perf_counter()
        (tokens,) = await self._continuations([prompt], decoding)
        self.model.wait_for_device()
        return tokens, time.perf_counter() - started


def batches(
    prompts: Sequence[_Prompt], size: int, equal_lengths: bool
) -> Iterator[list[_Prompt]]:
    """Yield batches by (token length, id), of one length only where that is asked."""
    ordered = sorted(prompts, key=lambda each: (len(each[1]), each[0].row_id))
    groups = (
        (list(group) for _, group in groupby(ordered, key=lambda each: len(each[1])))
        if equal_lengths
        else iter([ordered])
    )
    for group in groups:
        for start in range(0, len(group), size):
            yield group[start : start + size]


def _padding_free(decoding: Decoding) -> bool:
    """Tell whether padding would change answers: these settings look at all tokens."""
    return decoding.repetition_penalty != 1 or decoding.no_repeat_ngram_size != 0
