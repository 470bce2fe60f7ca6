"""Scores that come about while a run goes on.

The steps are those of every other reading of the evidence, in plan order and one at a
time; only their moment differs. An episode is scored from its records, once they are
written, in the time in which answers are awaited. What is left when the run has ended
is scored then.
"""

from __future__ import annotations

from typing import Final

import anyio

from harness.errors import FairtrialError
from harness.run.recorded import Evidence
from harness.run.score import ScoredCandidate, TakeRow, scoring_steps

PAUSE_S: Final = 0.002
"""Between two steps, which take about a millisecond each."""
BUSY_S: Final = 0.002
"""How late a pause ends on a loop that has others to serve."""


class RecordedSoFar:
    """Which episodes are recorded, by their place in the plan."""

    def __init__(self) -> None:
        self._next = 0
        """The first place of which no record is known."""
        self._ahead: set[int] = set()
        self._grew = anyio.Event()

    def add(self, place: int) -> None:
        """Note that an episode is recorded."""
        self._ahead.add(place)
        if place == self._next:
            while self._next in self._ahead:
                self._ahead.remove(self._next)
                self._next += 1
            self._grew.set()

    async def reach(self, place: int) -> None:
        """Wait until this episode and all before it are recorded."""
        while place >= self._next:
            self._grew = anyio.Event()
            await self._grew.wait()


class LiveScoring:
    """The scores of one run, worked out beside it."""

    def __init__(self, evidence: Evidence, take_row: TakeRow) -> None:
        """Score later; `take_row` gets the task table's rows in order."""
        self.recorded = RecordedSoFar()
        self._scored: list[ScoredCandidate] = []
        self._steps = scoring_steps(evidence, take_row, self._scored.append)
        self.failure: FairtrialError | None = None
        """What keeps the run from being scored; it ends the run after its last
        record, as it would without company."""

    async def run(self) -> None:
        """Score what is recorded; to be cancelled when the last episode is."""
        await self.recorded.reach(0)
        try:
            for place in self._steps:
                if place is not None:
                    await self.recorded.reach(place)
                await _nothing_else_to_do()
        except FairtrialError as error:
            self.failure = error

    def result(self) -> tuple[ScoredCandidate, ...]:
        """Score the rest of a run that has ended; raises as `score_run` does."""
        if self.failure is not None:
            raise self.failure
        for _ in self._steps:
            continue
        return tuple(self._scored)


async def _nothing_else_to_do() -> None:
    """Wait until the loop comes back on time, so that no answer waits for a score."""
    late = True
    while late:
        due = anyio.current_time() + PAUSE_S
        await anyio.sleep_until(due)
        late = anyio.current_time() > due + BUSY_S
