"""Arithmetic and words of the measurements that an engine takes of itself.

A figure means nothing without what lies inside its timer, so every figure carries its
boundary text; a figure that could not be taken has no value and its boundary says why.
The first row is cold, the others are warm, and of several warm figures the upper median
counts. Loading is never part of a first token.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence

from harness.engines.protocol import Measurement

COLD_START = "first_token_cold_s"
WARM_START = "first_token_warm_s"
TOKENS_PER_SECOND = "tokens_per_second"
PEAK_MEMORY = "peak_memory_bytes"
DEVICE_PEAK_MEMORY = "peak_device_memory_bytes"
LOAD = "load_s"


def upper_median(values: Sequence[float]) -> float | None:
    """Return the middle value, the higher one of two; None of nothing."""
    return sorted(values)[len(values) // 2] if values else None


def first_token_figures(
    seconds: Sequence[float], boundary: str
) -> tuple[Measurement, ...]:
    """Return the cold and the warm figure of rows measured in order."""
    warm = upper_median(seconds[1:])
    return (
        Measurement(
            COLD_START,
            seconds[0] if seconds else None,
            "s",
            f"{boundary}; the first row"
            if seconds
            else f"not measured: no row was answered; {boundary}",
        ),
        Measurement(
            WARM_START,
            warm,
            "s",
            f"{boundary}; upper median of {len(seconds) - 1} rows after the first"
            if warm is not None
            else f"not measured: it takes two answered rows; {boundary}",
        ),
    )


def rate_figure(
    tokens_and_seconds: Sequence[tuple[int, float]], boundary: str
) -> Measurement:
    """Return tokens a second: the upper median over all rows but the first."""
    rates = [tokens / seconds for tokens, seconds in tokens_and_seconds[1:] if seconds]
    rate = upper_median(rates)
    return Measurement(
        TOKENS_PER_SECOND,
        rate,
        "tokens/s",
        f"{boundary}; upper median of {len(rates)} rows after the first"
        if rate is not None
        else f"not measured: it takes two answered rows; {boundary}",
    )


def own_peak_memory() -> Measurement:
    """Return the largest resident size that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    in_bytes = peak if sys.platform == "darwin" else peak * 1024
    return Measurement(
        PEAK_MEMORY,
        in_bytes,
        "bytes",
        "largest resident size of the whole evaluating process since its start "
        "(ru_maxrss), the model and everything else in it",
    )
