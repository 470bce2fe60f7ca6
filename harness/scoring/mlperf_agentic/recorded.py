"""The recorded side: which turns are expected, and what is right at each.

Rows of one conversation are in the order of their turns. Every client row directly
before an assistant row makes one expected turn, found by the client row's number and
reported under the assistant row's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from harness.canonical import Json
from harness.scoring.mlperf_agentic.turns import Truth, truth_of

CLIENT_ROLES: Final = frozenset({"user", "tool"})
ASSISTANT_ROLE: Final = "assistant"


class ExpectedTurn(NamedTuple):
    """One client row with the recorded answer after it."""

    source_id: str
    client_turn: int
    assistant_turn: int
    truth: Truth
    previous: int
    """Position of the expected turn before it in its conversation, -1 for none."""


@dataclass(slots=True)
class Recorded:
    """All expected turns of a data set; positions follow (source id, client turn).

    Built with `add_conversation`, then `sort` once.
    """

    turns: list[ExpectedTurn] = field(default_factory=list)
    positions: dict[str, dict[int, int]] = field(default_factory=dict)
    """Source id, client turn -> position in `turns`."""
    numbered: dict[str, str] = field(default_factory=dict)
    """Source id by its digits without leading zeros, where every id is a number.

    The original turns such ids into numbers, and so do logs that it wrote.
    """

    def add_conversation(self, source_id: str, rows: Sequence[dict[str, Json]]) -> None:
        """Add the rows of one conversation, sorted by turn."""
        for client, assistant in pairwise(rows):
            if client["role"] in CLIENT_ROLES and assistant["role"] == ASSISTANT_ROLE:
                truth = truth_of(source_id, assistant)
                turn = ExpectedTurn(
                    source_id, client["turn"], assistant["turn"], truth, -1
                )
                self.turns.append(turn)

    def sort(self) -> None:
        """Give every expected turn its position."""
        self.turns.sort(key=lambda turn: (turn.source_id, turn.client_turn))
        self.positions = {}
        for position, turn in enumerate(self.turns):
            same = self.positions.setdefault(turn.source_id, {})
            if same:
                self.turns[position] = turn._replace(previous=position - 1)
            same[turn.client_turn] = position
        if all(_is_number(source_id) for source_id in self.positions):
            self.numbered = {str(int(name)): name for name in self.positions}

    def position_of(self, source_id: str, client_turn: int) -> int | None:
        """Return the position of an expected turn; None where none is expected."""
        turns = self.positions.get(source_id)
        if turns is None:
            turns = self.positions.get(self.numbered.get(source_id, ""))
        return None if turns is None else turns.get(client_turn)

    def excluded(self) -> Iterator[ExpectedTurn]:
        """Yield the turns without ground truth, issued or not."""
        return (turn for turn in self.turns if not turn.truth.names)


def _is_number(source_id: str) -> bool:
    return source_id.isascii() and source_id.isdecimal() and len(source_id) <= 18
