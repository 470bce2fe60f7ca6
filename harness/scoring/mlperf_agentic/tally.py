"""One walk over the scored turns: the sums that diagnostics are made of.

Turns come in reporting order: by conversation, then repeat, then turn.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

from harness.canonical import Json
from harness.scoring.mlperf_agentic.aggregate import RunScore, rounded_mean
from harness.scoring.mlperf_agentic.conversation_ids import Domain
from harness.scoring.mlperf_agentic.skips import CallSkip
from harness.scoring.mlperf_agentic.turn_log import IssuedTurn
from harness.scoring.mlperf_agentic.unanswered import Unanswered, cause_of


@dataclass(slots=True)
class Group:
    """The scored turns of one conversation, repeat or domain."""

    scores: array[float] = field(default_factory=lambda: array("d"))
    missing: int = 0

    def add(self, turn: IssuedTurn, score: float) -> None:
        """Take one scored turn."""
        self.scores.append(score)
        self.missing += turn.answer is None

    @property
    def mean(self) -> float | None:
        """The mean, rounded as the score is."""
        return rounded_mean(self.scores)

    def figures(self) -> dict[str, Json]:
        """Return the mean and the counts behind it."""
        return {
            "score": self.mean,
            "scored": len(self.scores),
            "missing": self.missing,
        }


@dataclass(slots=True)
class Tally:
    """What one walk over a run's scored turns adds up."""

    answered: dict[Domain, Group] = field(
        default_factory=lambda: {domain: Group() for domain in Domain}
    )
    """Turns with an output only."""
    causes: Counter[Unanswered] = field(default_factory=Counter)
    error_types: Counter[str] = field(default_factory=Counter)
    calls_skipped: Counter[CallSkip] = field(default_factory=Counter)
    stages: int = 0
    """Command stages of the model's answers."""
    mapped: int = 0
    """Those of them that an action came from."""
    by_conversation: dict[str, Group] = field(default_factory=dict)
    by_repeat: dict[int, Group] = field(default_factory=dict)
    times_scored: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Source id and client turn -> repeats in which the turn was scored."""

    def add(self, turn: IssuedTurn, score: float) -> None:
        """Take one scored turn."""
        expected = turn.expected
        source_id = expected.source_id
        self.by_conversation.setdefault(source_id, Group()).add(turn, score)
        self.by_repeat.setdefault(turn.repeat, Group()).add(turn, score)
        self.times_scored[source_id, expected.client_turn] += 1
        if turn.answer is None:
            self.causes[cause_of(turn)] += 1
            if turn.error_type is not None:
                self.error_types[turn.error_type] += 1
            return
        self.answered[expected.truth.domain].add(turn, score)
        actions = turn.answer.actions
        self.stages += actions.stages
        self.mapped += len(actions.names)
        self.calls_skipped.update(actions.skips)


def tally_of(run: RunScore) -> Tally:
    """Walk over the scored turns of a run."""
    tally = Tally()
    for turn, score in run.scored_turns():
        tally.add(turn, score)
    return tally
