"""What decoding a loaded model really applied, read off its last `generate`.

A setting counts as applied where the effective configuration says so and, for all that
works on logits, the processor for it was there; without the processor, its neutral
value was applied, whatever the configuration holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from harness.canonical import Json
from harness.engines.protocol import UNKNOWN, Decoding
from harness.engines.torch_model import Effective

_PROCESSORS: Final[Mapping[str, tuple[str, Json]]] = {
    "top_p": ("TopPLogitsWarper", 1.0),
    "top_k": ("TopKLogitsWarper", None),
    "repetition_penalty": ("RepetitionPenaltyLogitsProcessor", 1.0),
    "no_repeat_ngram_size": ("NoRepeatNGramLogitsProcessor", 0),
}
_EXPECTED: Final = frozenset(processor for processor, _ in _PROCESSORS.values())


def applied_decoding(effective: Effective | None, seed: int | None) -> dict[str, Json]:
    """Return every setting of a decoding as applied.

    `seed` is what the library's generator was seeded with; None: it was not.
    """
    if effective is None:
        return {each.name: UNKNOWN for each in fields(Decoding)}
    config = effective.config
    samples = bool(config.get("do_sample"))
    applied: dict[str, Json] = {
        "max_tokens": config.get("max_new_tokens"),
        "temperature": config.get("temperature") if samples else 0.0,
        "stop": config.get("stop_strings") or [],
        "seed": seed,
        "greedy": not samples,
        "num_beams": config.get("num_beams"),
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    for setting, (processor, neutral) in _PROCESSORS.items():
        present = processor in effective.processors
        applied[setting] = config.get(setting) if present else neutral
    return applied


def other_processors(effective: Effective | None) -> Json:
    """Return what changed logits beyond the settings of a decoding."""
    if effective is None:
        return UNKNOWN
    return [each for each in effective.processors if each not in _EXPECTED]
