"""What the driver asks of a candidate, and what a candidate asks of the evidence."""

from __future__ import annotations

from typing import Protocol

from harness.candidates.request import PreparedRequest
from harness.evidence.episode import Attempt, Outcome


class Candidate(Protocol):
    """A party that answers one prepared request at a time, many in flight."""

    async def exchange(self, request: PreparedRequest, *, deadline: float) -> Outcome:
        """Return how the request ended.

        `deadline` is the episode's, on the clock of `anyio.current_time()`. Raises
        CandidateError where the run of this candidate has to stop.
        """
        ...


class Recorder(Protocol):
    """The evidence log as a candidate sees it: what is recorded stays."""

    def request(self, request: PreparedRequest) -> None:
        """Record a request before its first byte is sent."""
        ...

    def attempt(self, request_hash: str, attempt: Attempt) -> None:
        """Record one HTTP exchange of the request."""
        ...

    def outcome(self, outcome: Outcome) -> None:
        """Record how the request ended."""
        ...

    def attempts_made(self, request_hash: str) -> int:
        """Return how many attempts of this request are recorded already."""
        ...
