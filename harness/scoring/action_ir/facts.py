"""Argument facts: what an action says about each argument of each call.

A fact is the call's index, its tool, the argument's name and, for values, the
argument's canonical text. PARALLEL calls are numbered in canonical order, so one call
more can move every index after it. Facts of different rows never meet.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.canonical import canonical_json
from harness.scoring.action_ir.action import Action

KeyFact = tuple[int, str, str]
ValueFact = tuple[int, str, str, str]


class Overlap(NamedTuple):
    """How many facts of gold and of a prediction are shared, and how many are not."""

    true_positive: int
    false_positive: int
    false_negative: int

    @property
    def is_empty(self) -> bool:
        """Whether neither side states a fact."""
        return not any(self)


def key_overlap(gold: Action, prediction: Action | None) -> Overlap:
    """Compare which arguments are given; no valid prediction states no fact."""
    return _overlap(_keys(gold), _keys(prediction))


def value_overlap(gold: Action, prediction: Action | None) -> Overlap:
    """Compare which arguments are given with which values."""
    return _overlap(_values(gold), _values(prediction))


def _overlap(
    gold: set[KeyFact] | set[ValueFact], predicted: set[KeyFact] | set[ValueFact]
) -> Overlap:
    shared = len(gold & predicted)
    return Overlap(shared, len(predicted) - shared, len(gold) - shared)


def _keys(action: Action | None) -> set[KeyFact]:
    if action is None:
        return set()
    return {
        (index, call.tool, name)
        for index, call in enumerate(action.calls)
        for name in call.args
    }


def _values(action: Action | None) -> set[ValueFact]:
    if action is None:
        return set()
    return {
        (index, call.tool, name, canonical_json(value))
        for index, call in enumerate(action.calls)
        for name, value in call.args.items()
    }
