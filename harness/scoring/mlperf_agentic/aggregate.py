"""The score of a run and the score file, as the original writes it.

The mean is over turns: long conversations and many repeats weigh more. It is the
exact sum of the unrounded scores over their number, so that the order of the log and
the version of Python cannot move it; rounding to four places comes last.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import fsum
from typing import Final

from harness.canonical import Json
from harness.scoring.mlperf_agentic.conversation_ids import Domain
from harness.scoring.mlperf_agentic.recorded import ExpectedTurn
from harness.scoring.mlperf_agentic.turn_log import IssuedTurn, TurnLog
from harness.scoring.mlperf_agentic.turns import NO_ANSWER, turn_score

PLACES: Final = 4
NO_GROUND_TRUTH: Final = "no ground truth"


def rounded_mean(scores: Iterable[float]) -> float | None:
    """Return the mean rounded to four places; None of nothing."""
    listed = scores if isinstance(scores, array) else array("d", scores)
    return round(fsum(listed) / len(listed), PLACES) if listed else None


@dataclass(slots=True)
class RunScore:
    """The scored turns of one run; the rows are made when they are asked for."""

    log: TurnLog
    scores: dict[Domain, array[float]] = field(
        default_factory=lambda: {domain: array("d") for domain in Domain}
    )
    """Unrounded, in reporting order."""
    issued: int = 0
    observed: int = 0
    repeats: set[int] = field(default_factory=set)
    """Repeat numbers of issued turns, those without ground truth included."""
    passes: Counter[str] = field(default_factory=Counter)
    """Source id -> repeats in which any turn of it was issued."""

    @property
    def score(self) -> float | None:
        """The mean over all scored turns, rounded; None where there is none."""
        return rounded_mean(score for part in self.scores.values() for score in part)

    @property
    def scored(self) -> int:
        """Issued turns that have ground truth."""
        return sum(len(part) for part in self.scores.values())

    @property
    def missing(self) -> int:
        """Scored turns to which the model gave no output."""
        return self.scored - self.observed

    def scored_turns(self) -> Iterator[tuple[IssuedTurn, float]]:
        """Yield every scored turn with its unrounded score, in reporting order."""
        parts = {domain: iter(part) for domain, part in self.scores.items()}
        for turn in self.log.issued():
            if turn.expected.truth.names:
                yield turn, next(parts[turn.expected.truth.domain])


def score_run(log: TurnLog) -> RunScore:
    """Score the issued turns of a closed log."""
    run = RunScore(log)
    last: tuple[str, int] | None = None
    for turn in log.issued():
        run.issued += 1
        run.repeats.add(turn.repeat)
        truth = turn.expected.truth
        current = turn.expected.source_id, turn.repeat
        if current != last:
            run.passes[current[0]] += 1
            last = current
        if truth.names:
            answer = turn.answer
            run.observed += answer is not None
            run.scores[truth.domain].append(turn_score(truth, answer or NO_ANSWER))
    return run


def score_file_head(run: RunScore) -> dict[str, Json]:
    """Return the members of the score file that stand before its rows."""
    return {
        "score": run.score,
        "turns": {
            "issued": run.issued,
            "expected": run.scored,
            "observed": run.observed,
            "missing": run.missing,
            "scored": run.scored,
        },
        "domains": {
            domain.value: {"score": rounded_mean(part), "scored": len(part)}
            for domain, part in run.scores.items()
            if part
        },
    }


def score_rows(run: RunScore) -> Iterator[dict[str, Json]]:
    """Yield the rows of `per_turn`."""
    return (score_row(turn, score) for turn, score in run.scored_turns())


def score_row(turn: IssuedTurn, score: float) -> dict[str, Json]:
    """Return one row of `per_turn`."""
    expected, answer = turn.expected, turn.answer or NO_ANSWER
    row: dict[str, Json] = {
        "conversation_id": expected.source_id,
        "repeat": turn.repeat,
        "turn": expected.assistant_turn,
        "domain": expected.truth.domain.value,
    }
    if turn.answer is None:
        row["missing"] = True
    if expected.truth.domain is Domain.WORKFLOW:
        row["gt_intents"] = list(expected.truth.names)
        row["model_intent"] = answer.intent
    else:
        row["gt_actions"] = list(expected.truth.names)
        row["model_actions"] = list(answer.actions.names)
    row["score"] = round(score, PLACES)
    return row


def excluded_rows(run: RunScore) -> Iterator[dict[str, Json]]:
    """Yield the rows of `excluded_turns`, which is absent where there are none."""
    return (_excluded_row(turn) for turn in run.log.recorded.excluded())


def _excluded_row(turn: ExpectedTurn) -> dict[str, Json]:
    return {
        "conversation_id": turn.source_id,
        "turn": turn.assistant_turn,
        "domain": turn.truth.domain.value,
        "exclude_reason": NO_GROUND_TRUTH,
    }
