"""`vllm_offline`: vLLM in this process, where it is installed.

The checkpoint's generation_config.json takes no part in sampling; every setting is
given. What was applied is read off the sampling parameters that vLLM has normalised.
Calls block the event loop: vLLM works in a process of its own and expects its caller in
the main thread, and nothing else of ours runs meanwhile.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio.lowlevel

from harness.canonical import Json
from harness.engines.decoding_rules import VLLM_OFFLINE, refusals_of
from harness.engines.library_border import LibraryBorder
from harness.engines.measuring import LOAD, first_token_figures, rate_figure
from harness.engines.protocol import (
    CONTEXT_OVERFLOW,
    UNKNOWN,
    Decoding,
    Generation,
    Measurement,
    PromptRow,
    Refusal,
)
from harness.engines.runtime_versions import (
    gpu_names,
    operating_system,
    runtime_versions,
)
from harness.engines.server_process import resident_bytes
from harness.engines.torch_checkpoint import verified_files
from harness.engines.vllm_server import memory_figure
from harness.errors import EngineError

Tokens = list[int]

START_BOUNDARY = (
    "wall time of one call for one token of one row, prefill included, tokenising and "
    "loading excluded"
)
RATE_BOUNDARY = (
    "generated tokens (end token included) by the wall time of the call for the whole "
    "answer of one row, prefill included"
)


@dataclass(frozen=True, slots=True)
class VllmOfflineSettings:
    """How vLLM loads a checkpoint; on which device, vLLM alone decides."""

    model: Path
    """The folder of the checkpoint."""
    model_identity: str
    """Which weights these are: `source:model@revision-or-digest`."""
    dtype: str
    """`float32`, `bfloat16` or `float16`."""
    checkpoint_sha256: Mapping[str, str] | None = None
    """File name to 64 hex digits; None: nothing was declared."""
    batch_size: int = 256
    """Rows in one call; answers are handed on after each."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, such as `max_model_len`."""


class VllmOffline:
    """Answers of one checkpoint by vLLM; loads on entry and frees on exit."""

    def __init__(self, settings: VllmOfflineSettings) -> None:
        self.settings = settings
        self.checkpoint_sha256: Mapping[str, str] = {}
        """Every file that may have been loaded, once the engine is entered."""
        self._vllm: Any = None
        self._llm: Any = None
        self._load_s = 0.0
        self._observed: Mapping[str, Json] = {"device": UNKNOWN}
        self._applied: Mapping[str, Json] = {
            each.name: UNKNOWN for each in fields(Decoding)
        }

    @property
    def name(self) -> str:
        """The kind of engine."""
        return VLLM_OFFLINE

    @property
    def measures_fresh(self) -> bool:
        """The first token is cold only before any other answer."""
        return True

    def refusals(self, decoding: Decoding) -> tuple[Refusal, ...]:
        """Return every setting that vLLM cannot apply."""
        return refusals_of(self.name, decoding)

    async def __aenter__(self) -> Self:
        settings = self.settings
        self.checkpoint_sha256 = verified_files(
            settings.model, settings.checkpoint_sha256
        )
        self._vllm = _import_vllm()
        started = time.perf_counter()
        with LibraryBorder(
            "eval_engine_start_failed",
            "vLLM cannot load the checkpoint",
            where=settings.model.name,
            recovery="look at what vLLM printed",
        ):
            self._llm = self._vllm.LLM(
                model=str(settings.model),
                dtype=settings.dtype,
                trust_remote_code=False,
                generation_config="vllm",
                **settings.options,
            )
            self._observed = _observed_conditions(self._llm)
        self._load_s = time.perf_counter() - started
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._llm = None
        gc.collect()

    async def generate(
        self,
        rows: Sequence[PromptRow],
        decoding: Decoding,
        take: Callable[[Generation], None],
    ) -> None:
        """Answer every row; raises EngineError where vLLM breaks down."""
        fitting: list[tuple[PromptRow, Tokens]] = []
        for row in rows:
            tokens = self._prompt_tokens(row)
            if self._overflows(tokens, decoding):
                take(self._overflow(row, tokens))
            else:
                fitting.append((row, tokens))
        size = self.settings.batch_size
        for start in range(0, len(fitting), size):
            batch = fitting[start : start + size]
            outputs, elapsed_s = self._call([each for _, each in batch], decoding)
            for (row, tokens), output in zip(batch, outputs, strict=True):
                take(self._answered(row, tokens, output.outputs[0], elapsed_s))
            await anyio.lowlevel.checkpoint()

    def _prompt_tokens(self, row: PromptRow) -> Tokens:
        with LibraryBorder(
            "eval_engine_failed",
            "the checkpoint's tokenizer or chat template cannot take a prompt",
            where=row.row_id,
            recovery="look at the roles and order of the messages",
        ):
            tokenizer = self._llm.get_tokenizer()
            text = tokenizer.apply_chat_template(
                [dict(message) for message in row.messages],
                add_generation_prompt=True,
                tokenize=False,
            )
            found: Tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
            return found

    def _overflows(self, tokens: Tokens, decoding: Decoding) -> bool:
        limit: int = self._llm.llm_engine.model_config.max_model_len
        return len(tokens) + decoding.max_tokens > limit

    def _call(
        self, prompts: Sequence[Tokens], decoding: Decoding
    ) -> tuple[list[Any], float]:
        started = time.perf_counter()
        with LibraryBorder(
            "eval_engine_failed",
            "vLLM broke down while it decoded",
            where=self.settings.model.name,
            recovery="look at what vLLM printed",
        ):
            params = self._parameters(decoding)
            found: list[Any] = self._llm.generate(
                [{"prompt_token_ids": each} for each in prompts],
                params,
                use_tqdm=False,
            )
            self._applied = _applied(params)
        return found, time.perf_counter() - started

    def _parameters(self, decoding: Decoding) -> Any:
        return self._vllm.SamplingParams(
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            top_k=-1 if decoding.top_k is None else decoding.top_k,
            stop=list(decoding.stop),
            seed=decoding.seed,
            presence_penalty=decoding.presence_penalty,
            frequency_penalty=decoding.frequency_penalty,
            repetition_penalty=decoding.repetition_penalty,
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
        )

    def _answered(
        self, row: PromptRow, tokens: Tokens, answer: Any, elapsed_s: float
    ) -> Generation:
        return Generation(
            row.row_id,
            self._text(answer),
            answer.finish_reason,
            None,
            len(tokens),
            len(answer.token_ids),
            elapsed_s,
            self._row_conditions(),
        )

    def _text(self, answer: Any) -> str:
        """Return the text, special tokens kept, without the end token or stop text."""
        if isinstance(answer.stop_reason, str):
            return str(answer.text)
        # vLLM holds back the bytes of a character that its last token leaves open.
        tokens = list(answer.token_ids)
        if answer.finish_reason == "stop":
            tokens = tokens[:-1]
        decoded: str = self._llm.get_tokenizer().decode(
            tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return decoded

    def _overflow(self, row: PromptRow, tokens: Tokens) -> Generation:
        return Generation(
            row.row_id,
            None,
            None,
            CONTEXT_OVERFLOW,
            len(tokens),
            0,
            0.0,
            self._row_conditions(),
        )

    def _row_conditions(self) -> dict[str, Json]:
        return {name: self._observed[name] for name in ("device", "compute_dtype")}

    def applied(self) -> Mapping[str, Json]:
        """Return the sampling parameters as vLLM normalised them."""
        return self._applied

    def conditions(self) -> Mapping[str, Json]:
        """Return versions and what is read off the loaded engine."""
        return {
            "engine": self.name,
            "engine_impl": "vllm",
            "model_identity": self.settings.model_identity,
            "os": operating_system(),
            "versions": runtime_versions(),
            "device_name": ", ".join(gpu_names()) or None,
            **self._observed,
        }

    async def measure(
        self, rows: Sequence[PromptRow], decoding: Decoding
    ) -> tuple[Measurement, ...]:
        """Time the rows one by one, in their order; rows that fail are left out."""
        first_s: list[float] = []
        whole: list[tuple[int, float]] = []
        sizes: list[int] = []
        for row in rows:
            tokens = self._prompt_tokens(row)
            if self._overflows(tokens, decoding):
                continue
            _, seconds = self._call([tokens], replace(decoding, max_tokens=1))
            (output,), whole_s = self._call([tokens], decoding)
            first_s.append(seconds)
            whole.append((len(output.outputs[0].token_ids), whole_s))
            sizes.append(resident_bytes(os.getpid()) or 0)
            await anyio.lowlevel.checkpoint()
        return (
            *first_token_figures(first_s, START_BOUNDARY),
            rate_figure(whole, RATE_BOUNDARY),
            memory_figure(sizes, "this process"),
            Measurement(LOAD, self._load_s, "s", "wall time of building vllm.LLM"),
        )


def _import_vllm() -> Any:
    try:
        import vllm
    except ImportError as error:
        raise EngineError(
            "eval_engine_start_failed",
            "vllm_offline needs vLLM, and it cannot be imported",
            expected="vLLM installed beside fairtrial",
            actual=str(error),
            recovery="install vLLM for your device, or use vllm_server or torch_local",
        ) from None
    return vllm


def _observed_conditions(llm: Any) -> dict[str, Json]:
    config = llm.llm_engine.vllm_config
    dtype = str(config.model_config.dtype).removeprefix("torch.")
    return {
        "device": str(config.device_config.device_type),
        "weight_dtype": dtype,
        "compute_dtype": dtype,
        "quantization": config.model_config.quantization,
        "context_tokens": config.model_config.max_model_len,
    }


def _applied(params: Any) -> dict[str, Json]:
    return {
        "max_tokens": params.max_tokens,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k if params.top_k > 0 else None,
        "stop": list(params.stop),
        "seed": params.seed,
        "greedy": params.temperature == 0,
        "num_beams": 1,
        "presence_penalty": params.presence_penalty,
        "frequency_penalty": params.frequency_penalty,
        "repetition_penalty": params.repetition_penalty,
        "no_repeat_ngram_size": 0,
    }
