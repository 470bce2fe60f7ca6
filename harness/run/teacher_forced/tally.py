"""One walk over the turns of a run: what the run's report counts and lists.

Nothing here is a score. Counts are over all planned turns; times and tokens are over
those that were answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, fsum
from typing import Final

from harness.canonical import Json
from harness.evidence.episode import Outcome
from harness.run.teacher_forced.event_log import error_type, sample_uuid
from harness.run.teacher_forced.recorded import RecordedTurn
from harness.stats.servers import Servers

_SHARES: Final = (0.5, 0.9, 0.99)
_USAGE: Final = ("prompt_tokens", "completion_tokens")


@dataclass(slots=True)
class TurnTally:
    """What one walk adds up; `passing` lets turns through and takes each."""

    planned: int = 0
    answered: int = 0
    failed: int = 0
    given_up: int = 0
    attempts: int = 0
    """Exchanges of asked turns."""
    uuids: list[tuple[str, int]] = field(default_factory=list)
    """Sample ids with the number of their turn in the data set, from 0."""
    unanswered: list[dict[str, Json]] = field(default_factory=list)
    _causes: Counter[str] = field(default_factory=Counter)
    _owners: Counter[str] = field(default_factory=Counter)
    _classes: Counter[str] = field(default_factory=Counter)
    _defects: Counter[str] = field(default_factory=Counter)
    _finish: Counter[str] = field(default_factory=Counter)
    _latencies: list[float] = field(default_factory=list)
    _tokens: dict[str, list[int]] = field(
        default_factory=lambda: {name: [] for name in _USAGE}
    )
    _servers: Servers = field(default_factory=Servers)
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    def passing(self, turns: Iterable[RecordedTurn]) -> Iterator[RecordedTurn]:
        """Yield the turns unchanged, and add each up."""
        for turn in turns:
            self._add(turn)
            yield turn

    @property
    def unanswered_share(self) -> float:
        """Turns without an answer over all planned ones; 0 where none is planned."""
        if not self.planned:
            return 0.0
        return (self.failed + self.given_up) / self.planned

    def payload(self) -> dict[str, Json]:
        """Return the counts, times and tokens of the report."""
        return {
            "turns": {
                "planned": self.planned,
                "answered": self.answered,
                "failed": self.failed,
                "given_up": self.given_up,
                "attempts": self.attempts,
            },
            "unanswered_share": self.unanswered_share,
            "unanswered_by_cause": _counts(self._causes),
            "unanswered_by_owner": _counts(self._owners),
            "answers": {
                "by_class": _counts(self._classes),
                "defects": _counts(self._defects),
                "finish_reasons": _counts(self._finish),
            },
            "latency_s": _spread(self._latencies),
            "tokens": {name: _spread(found) for name, found in self._tokens.items()},
            "served_by": [each.semantic_payload() for each in self._servers.result()],
            "unanswered_turns": self.unanswered,
        }

    def _add(self, turn: RecordedTurn) -> None:
        self.planned += 1
        key = (turn.part.conversation.source_id, turn.turn.client_turn)
        number = self._numbers.setdefault(key, len(self._numbers))
        self.uuids.append((sample_uuid(turn.request.request_hash), number))
        if turn.given_up_after is not None:
            self.given_up += 1
        else:
            self.attempts += len(turn.attempts)
            self.failed += turn.cause is not None
        if turn.cause is None:
            self._add_answer(turn.outcome, turn.attempts[-1].latency_s)
        else:
            self._causes[turn.cause.code] += 1
            self._owners[turn.cause.owner.value] += 1
            self.unanswered.append(_unanswered_row(turn))

    def _add_answer(self, outcome: Outcome, latency_s: float) -> None:
        self.answered += 1
        self._classes[str(outcome.wire_class)] += 1
        if outcome.detail_code is not None:
            self._defects[outcome.detail_code] += 1
        self._latencies.append(latency_s)
        response = outcome.response
        if response is None:
            return
        if response.finish_reason is not None:
            self._finish[response.finish_reason] += 1
        self._servers.add(response.server, response.served_model)
        for name, found in self._tokens.items():
            count = (response.usage or {}).get(name)
            if type(count) is int and count >= 0:
                found.append(count)


def _unanswered_row(turn: RecordedTurn) -> dict[str, Json]:
    if turn.cause is None:
        raise AssertionError("an answered turn is no row here")
    given_up = turn.given_up_after is not None
    return {
        "conversation_id": turn.part.conversation.source_id,
        "repeat": turn.part.repeat,
        "client_turn": turn.turn.client_turn,
        "turn": turn.turn.assistant_turn,
        "scored": bool(turn.turn.truth.names),
        "cause": turn.cause.code,
        "owner": turn.cause.owner.value,
        "given_up_after": turn.given_up_after,
        "attempts": 0 if given_up else len(turn.attempts),
        "http_status": None if given_up else turn.attempts[-1].http_status,
        "error_type": error_type(turn),
    }


def _spread(values: list[float] | list[int]) -> dict[str, Json] | None:
    """Return count, mean, ends and nearest-rank quantiles; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    quantiles = {
        f"p{round(share * 100)}": ordered[ceil(share * len(ordered)) - 1]
        for share in _SHARES
    }
    return {
        "count": len(ordered),
        "mean": fsum(ordered) / len(ordered),
        "min": ordered[0],
        **quantiles,
        "max": ordered[-1],
    }


def _counts(counter: Counter[str]) -> dict[str, Json]:
    return {name: counter[name] for name in sorted(counter)}
