"""Loading a checkpoint with transformers: no download, no pickle, no code of its own.

torch and transformers are imported here and nowhere else, when a checkpoint is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from harness.engines.library_border import LibraryBorder
from harness.engines.torch_checkpoint import TorchSettings
from harness.engines.torch_model import TorchModel
from harness.errors import EngineError

_CONTEXT_KEYS: Final = ("max_position_embeddings", "n_positions", "max_seq_len")


def load_model(settings: TorchSettings) -> TorchModel:
    """Load tokenizer and weights; the files were verified before.

    Raises EngineError (`eval_engine_start_failed`).
    """
    started = time.perf_counter()
    torch, transformers = import_library(settings)
    require_device(torch, settings)
    with loading(settings):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            settings.model, local_files_only=True, trust_remote_code=False
        )
        model = load_weights(
            transformers.AutoModelForCausalLM.from_pretrained, torch, settings
        )
    _refuse_unusable(settings, tokenizer, model)
    end_tokens = _end_tokens(model, tokenizer)
    padding = tokenizer.pad_token_id
    return TorchModel(
        settings,
        torch,
        transformers,
        tokenizer,
        model,
        end_tokens,
        padding if padding is not None else next(iter(end_tokens), 0),
        context_tokens(model),
        time.perf_counter() - started,
    )


def import_library(settings: TorchSettings) -> tuple[Any, Any]:
    """Return torch and transformers; raise EngineError where they are absent."""
    with LibraryBorder(
        "eval_engine_start_failed",
        "torch_local needs torch and transformers, and one cannot be imported",
        where=settings.model.name,
        recovery="pip install 'fairtrial[torch]'",
    ):
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        return torch, transformers


def require_device(torch: Any, settings: TorchSettings) -> None:
    """Raise EngineError where the device of the settings is not there."""
    kind, _, number = settings.device.partition(":")
    present = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "cuda" and int(number or 0) >= present:
        raise EngineError(
            "eval_engine_start_failed",
            "the device is not there",
            where=settings.model.name,
            expected=settings.device,
            actual=f"{present} CUDA devices that torch can use",
            recovery="set device: cpu, or run where the device is",
        )


def load_weights(
    loader: Callable[..., Any],
    torch: Any,
    settings: TorchSettings,
    may_lack: tuple[str, ...] = (),
) -> Any:
    """Return a model for inference on the device and in the type of the settings.

    Raises EngineError where the checkpoint lacks weights of the model, which the
    library would draw at random; those that begin with `may_lack` are not missed.
    """
    model, report = loader(
        settings.model,
        dtype=getattr(torch, settings.dtype),
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
    )
    wrong = [str(key) for key in report.get("mismatched_keys", ())]
    wrong += [
        key for key in report.get("missing_keys", ()) if not key.startswith(may_lack)
    ]
    if wrong:
        raise EngineError(
            "eval_engine_start_failed",
            "the checkpoint lacks weights of its own architecture",
            where=settings.model.name,
            expected="every weight in a safetensors file, in its declared shape",
            actual=", ".join(sorted(wrong)[:8]),
            recovery="bring back the whole checkpoint",
        )
    return model.to(settings.device).eval()


def loading(settings: TorchSettings) -> LibraryBorder:
    """Attribute what the library raises while it loads a checkpoint."""
    return LibraryBorder(
        "eval_engine_start_failed",
        "the checkpoint cannot be loaded",
        where=settings.model.name,
        recovery="give a transformers checkpoint with safetensors and a tokenizer",
    )


def _refuse_unusable(settings: TorchSettings, tokenizer: Any, model: Any) -> None:
    problem = ""
    if settings.chat_template and not tokenizer.chat_template:
        problem = "the tokenizer has no chat template"
    if model.config.is_encoder_decoder:
        problem = "an encoder-decoder model does not continue a text"
    if problem:
        raise EngineError(
            "eval_engine_start_failed",
            problem,
            where=settings.model.name,
            expected="a causal language model, and a chat template if one is used",
            recovery="give another checkpoint, or set chat_template: false",
        )


def _end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    declared = model.generation_config.eos_token_id
    if declared is None:
        declared = tokenizer.eos_token_id
    if declared is None:
        return ()
    return tuple(declared) if isinstance(declared, list) else (declared,)


def context_tokens(model: Any) -> int | None:
    """Return how many tokens the model takes; None: it states no limit."""
    config = model.config.get_text_config()
    for key in _CONTEXT_KEYS:
        limit = getattr(config, key, None)
        if isinstance(limit, int):
            return limit
    return None
