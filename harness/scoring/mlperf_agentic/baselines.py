"""What a program that reads nothing would score on the same turns.

A constant answer is the same one or two actions, or the same intent, at every turn.
Repeating the previous recorded turn answers with the ground truth of the expected
turn before it, and with nothing at the first one of a conversation; its history is in
the prompt, so any model could. Turns weigh as often as they were scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from math import fsum
from typing import Final

from harness.canonical import Json
from harness.scoring.mlperf_agentic.aggregate import PLACES
from harness.scoring.mlperf_agentic.coding import overlap
from harness.scoring.mlperf_agentic.conversation_ids import Domain
from harness.scoring.mlperf_agentic.recorded import ExpectedTurn, Recorded

SHOWN: Final = 5
"""Best constant answers that are listed."""
_PAIRED: Final = 8
"""Best single actions of which pairs are made."""

Weights = Mapping[int, int]
"""Position of an expected turn -> repeats in which it was scored."""


def baselines(recorded: Recorded, weights: Weights) -> dict[str, Json]:
    """Return the baselines over all scored turns, and of each domain."""
    result: dict[str, Json] = {"repeat_previous": _previous(recorded, weights)}
    for domain, constant in ((Domain.CODING, _actions), (Domain.WORKFLOW, _intents)):
        part = {
            position: weight
            for position, weight in weights.items()
            if recorded.turns[position].truth.domain is domain
        }
        if part:
            result[domain.value] = {
                **constant(recorded, part),
                "repeat_previous": _previous(recorded, part),
            }
    return result


def _actions(recorded: Recorded, weights: Weights) -> dict[str, Json]:
    truths: Counter[tuple[str, ...]] = Counter()
    for position, weight in weights.items():
        truths[recorded.turns[position].truth.names] += weight
    singles = _best(
        [(name,) for name in {n for truth in truths for n in truth}], truths
    )
    leading = sorted(answer[0] for answer, _ in singles[:_PAIRED])
    pairs = _best(combinations(leading, 2), truths)
    return {
        "constant": [
            {"actions": list(answer), "score": score}
            for answer, score in (*singles[:SHOWN], *pairs[:SHOWN])
        ],
    }


def _best(
    answers: Iterable[tuple[str, ...]], truths: Counter[tuple[str, ...]]
) -> list[tuple[tuple[str, ...], float]]:
    total = truths.total()
    scored = []
    for answer in answers:
        hits = (weight * overlap(t, answer).score for t, weight in truths.items())
        scored.append((answer, round(fsum(hits) / total, PLACES)))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _intents(recorded: Recorded, weights: Weights) -> dict[str, Json]:
    hits: Counter[str] = Counter()
    for position, weight in weights.items():
        for code in recorded.turns[position].truth.names:
            hits[code] += weight
    total = sum(weights.values())
    best = sorted(hits.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN]
    return {
        "constant": [
            {"intent": code, "score": round(n / total, PLACES)} for code, n in best
        ]
    }


def _previous(recorded: Recorded, weights: Weights) -> float | None:
    total = sum(weights.values())
    if not total:
        return None
    scores = (
        weight * _after_previous(recorded, recorded.turns[position])
        for position, weight in weights.items()
    )
    return round(fsum(scores) / total, PLACES)


def _after_previous(recorded: Recorded, turn: ExpectedTurn) -> float:
    if turn.previous < 0:
        return 0.0
    before = recorded.turns[turn.previous].truth.names
    if turn.truth.domain is Domain.WORKFLOW:
        return 1.0 if before and before[0] in turn.truth.names else 0.0
    return overlap(turn.truth.names, before).score
