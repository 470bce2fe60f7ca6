"""A causal language model that transformers has loaded, and greedy decoding with it.

Every generation setting is given by us: the checkpoint's generation_config.json takes
part with its end tokens only. What `generate` used is seen from inside, by a decoding
loop that notes the effective configuration and the names of the processors of logits
before it hands over to the library's own loop.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from harness.canonical import Json
from harness.engines.library_border import LibraryBorder
from harness.engines.measuring import DEVICE_PEAK_MEMORY
from harness.engines.protocol import Decoding, Measurement, PromptRow
from harness.engines.torch_checkpoint import TorchSettings
from harness.errors import EngineError

Tokens = list[int]

_CLOCK_IN_TEMPLATE: Final = "strftime_now"
_ALLOCATION_WORDS: Final = ("DefaultCPUAllocator", "out of memory", "not enough memory")


class MemoryExhaustedError(Exception):
    """A batch did not fit into memory; what it held is free again."""


@dataclass(frozen=True, slots=True)
class Effective:
    """What `generate` used, as seen from inside its decoding loop."""

    config: Mapping[str, Any]
    processors: tuple[str, ...]
    """Class names of whatever changes logits."""


@dataclass(slots=True)
class TorchModel:
    """One loaded model with its tokenizer; `torch_loading.load_model` builds it."""

    settings: TorchSettings
    torch: Any
    transformers: Any
    tokenizer: Any
    model: Any
    end_tokens: tuple[int, ...]
    pad_token: int
    context_tokens: int | None
    """The most tokens that prompt and answer may have; None: no limit is stated."""
    load_s: float
    effective: Effective | None = None
    """None until something was generated."""
    seed: int | None = None
    """What the library's generator was last seeded with by us."""

    def prompt_tokens(self, row: PromptRow) -> Tokens:
        """Return the tokens of a row's prompt; raise EngineError."""
        with LibraryBorder(
            "eval_engine_failed",
            "the checkpoint's tokenizer or chat template cannot take a prompt",
            where=row.row_id,
            recovery="look at the roles and order of the messages",
        ):
            text = self._prompt_text(row)
            found: Tokens = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            return found

    def _prompt_text(self, row: PromptRow) -> str:
        if not self.settings.chat_template:
            return plain_prompt(row)
        text: str = self.tokenizer.apply_chat_template(
            [dict(message) for message in row.messages],
            add_generation_prompt=True,
            tokenize=False,
        )
        return text

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of an answer, special tokens kept and nothing trimmed.

        The end token that closes it is not part of the text.
        """
        ended = bool(tokens) and tokens[-1] in self.end_tokens
        text: str = self.tokenizer.decode(
            list(tokens[:-1] if ended else tokens),
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return text

    def continuations(
        self, prompts: Sequence[Tokens], decoding: Decoding, stop: threading.Event
    ) -> list[Tokens]:
        """Return the greedy continuation of each prompt, its end token included.

        Raises MemoryExhaustedError where the batch does not fit, and EngineError for
        anything else that the library raises. `stop` ends it at its next token.
        """
        generated: Any = None
        exhausted = False
        try:
            with LibraryBorder(
                "eval_engine_failed",
                "the model broke down while it decoded",
                where=self.settings.model.name,
                recovery="look at the message of the library",
            ):
                generated = self._generate(prompts, decoding, stop)
        except EngineError as error:
            if not self._is_exhaustion(error.__cause__):
                raise
            exhausted = True
        if exhausted:
            # Outside the handler, whose traceback still held the batch's tensors.
            self._free()
            raise MemoryExhaustedError
        width = max(map(len, prompts))
        return [self._until_end(row[width:]) for row in generated.tolist()]

    def _generate(
        self, prompts: Sequence[Tokens], decoding: Decoding, stop: threading.Event
    ) -> Any:
        torch = self.torch
        width = max(map(len, prompts))
        padded = [[self.pad_token] * (width - len(p)) + p for p in prompts]
        mask = [[0] * (width - len(p)) + [1] * len(p) for p in prompts]
        if decoding.seed is not None:
            torch.manual_seed(decoding.seed)
            self.seed = torch.initial_seed()
        with torch.inference_mode():
            return self.model.generate(
                input_ids=torch.tensor(padded, device=self.model.device),
                attention_mask=torch.tensor(mask, device=self.model.device),
                generation_config=self._configure(decoding),
                stopping_criteria=self._stop_criteria(stop),
                custom_generate=self._observed,
            )

    def _configure(self, decoding: Decoding) -> Any:
        config = self.transformers.GenerationConfig(
            max_new_tokens=decoding.max_tokens,
            do_sample=False,
            num_beams=decoding.num_beams,
            repetition_penalty=decoding.repetition_penalty,
            no_repeat_ngram_size=decoding.no_repeat_ngram_size,
            eos_token_id=list(self.end_tokens) or None,
            pad_token_id=self.pad_token,
            use_cache=True,
        )
        # `generate` fills what a config leaves open from the model's own one.
        self.model.generation_config = config
        return config

    def _stop_criteria(self, stop: threading.Event) -> Any:
        torch = self.torch

        def asked(input_ids: Any, *_: Any, **__: Any) -> Any:
            rows = input_ids.shape[0]
            return torch.full((rows,), stop.is_set(), device=input_ids.device)

        return self.transformers.StoppingCriteriaList([asked])

    def _observed(
        self,
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        self.effective = Effective(
            generation_config.to_dict(),
            tuple(type(processor).__name__ for processor in logits_processor),
        )
        return type(model)._sample(
            model,
            input_ids,
            logits_processor=logits_processor,
            stopping_criteria=stopping_criteria,
            generation_config=generation_config,
            **model_kwargs,
        )

    def _until_end(self, tokens: Tokens) -> Tokens:
        for position, token in enumerate(tokens):
            if token in self.end_tokens:
                return tokens[: position + 1]
        return tokens

    def _is_exhaustion(self, error: BaseException | None) -> bool:
        if isinstance(error, MemoryError | self.torch.OutOfMemoryError):
            return True
        return isinstance(error, RuntimeError) and any(
            words in str(error) for words in _ALLOCATION_WORDS
        )

    def _free(self) -> None:
        gc.collect()
        if self.torch.cuda.is_available():
            self.torch.cuda.empty_cache()

    def release(self) -> None:
        """Let go of weights and tokenizer and give their memory back."""
        self.model = self.tokenizer = None
        self._free()

    def device_peak_memory(self) -> tuple[Measurement, ...]:
        """Return the most memory that the model's device held; none on a CPU."""
        if self.model.device.type != "cuda":
            return ()
        return (
            Measurement(
                DEVICE_PEAK_MEMORY,
                self.torch.cuda.max_memory_allocated(self.model.device),
                "bytes",
                "most memory that torch's allocator held on the device since the start "
                "of the process; what the driver and other processes hold is not in it",
            ),
        )

    def wait_for_device(self) -> None:
        """Return when everything given to the device is done."""
        if self.model.device.type == "cuda":
            self.torch.cuda.synchronize(self.model.device)

    def row_conditions(self) -> dict[str, Json]:
        """Return where and in what type an answer is computed."""
        return {
            "device": str(self.model.device),
            "compute_dtype": str(self.model.dtype).removeprefix("torch."),
        }

    def observed_conditions(self) -> dict[str, Json]:
        """Return what is read off the loaded model: device, types, numerics, ends."""
        config = self.model.config
        quantized = getattr(config, "quantization_config", None)
        return {
            **self.row_conditions(),
            "device_name": self._device_name(),
            "weight_dtype": _type_names(p.dtype for p in self.model.parameters()),
            "quantization": None if quantized is None else _method_of(quantized),
            "numerics": self._numerics(),
            "end_tokens": list(self.end_tokens),
            "context_tokens": self.context_tokens,
            **self._template_conditions(),
        }

    def _device_name(self) -> str | None:
        if self.model.device.type != "cuda":
            return None
        name: str = self.torch.cuda.get_device_name(self.model.device)
        return name

    def _numerics(self) -> dict[str, Json]:
        torch = self.torch
        return {
            "attention": str(getattr(self.model.config, "_attn_implementation", None)),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
            "threads": torch.get_num_threads(),
        }

    def _template_conditions(self) -> dict[str, Json]:
        template = self.tokenizer.chat_template
        if not self.settings.chat_template or not isinstance(template, str):
            return {"chat_template_sha256": None}
        return {
            "chat_template_sha256": sha256(template.encode()).hexdigest(),
            "chat_template_reads_clock": _CLOCK_IN_TEMPLATE in template,
        }


def plain_prompt(row: PromptRow) -> str:
    """Return the content of a row's only message; raise EngineError."""
    if len(row.messages) != 1:
        raise EngineError(
            "eval_engine_failed",
            "without a chat template a prompt is one message, as it stands",
            where=row.row_id,
            expected="a user message and nothing else",
            actual=", ".join(message["role"] for message in row.messages),
            recovery="set prompt.system: null, or chat_template: true",
        )
    return row.messages[0]["content"]


def _type_names(types: Any) -> str:
    return ", ".join(sorted({str(each).removeprefix("torch.") for each in types}))


def _method_of(quantized: Any) -> str:
    declared = quantized if isinstance(quantized, dict) else quantized.to_dict()
    return str(declared.get("quant_method"))
