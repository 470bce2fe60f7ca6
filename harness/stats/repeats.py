"""pass@k and pass^k from repeated trials, as exact fractions.

Of a task's `n` trials `c` succeeded. Drawing k of them without replacement, pass@k
is the chance that at least one succeeded and pass^k the chance that all did; both
are unbiased for k <= n. Over tasks the mean is taken, each task counting once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import comb
from typing import NamedTuple


class TrialCount(NamedTuple):
    """One task's repeats."""

    trials: int
    successes: int


def pass_at_k(count: TrialCount, k: int) -> Fraction:
    """Return the chance that at least one of k trials succeeds; 1 <= k <= trials."""
    _check(count, k)
    failures = count.trials - count.successes
    return 1 - Fraction(comb(failures, k), comb(count.trials, k))


def pass_hat_k(count: TrialCount, k: int) -> Fraction:
    """Return the chance that all of k trials succeed (pass^k); 1 <= k <= trials."""
    _check(count, k)
    return Fraction(comb(count.successes, k), comb(count.trials, k))


def mean_pass_at_k(tasks: Mapping[TrialCount, int], k: int) -> Fraction | None:
    """Return pass@k over tasks; None where there is no task.

    `tasks` says how many tasks have each count.
    """
    return _mean((pass_at_k(count, k), number) for count, number in tasks.items())


def mean_pass_hat_k(tasks: Mapping[TrialCount, int], k: int) -> Fraction | None:
    """Return pass^k over tasks, as `mean_pass_at_k` does."""
    return _mean((pass_hat_k(count, k), number) for count, number in tasks.items())


def _check(count: TrialCount, k: int) -> None:
    if not 0 <= count.successes <= count.trials or not 1 <= k <= count.trials:
        raise ValueError(f"k={k} of {count.successes}/{count.trials} trials")


def _mean(values: Iterable[tuple[Fraction, int]]) -> Fraction | None:
    total = Fraction(0)
    count = 0
    for value, number in values:
        total += value * number
        count += number
    return total / count if count else None
