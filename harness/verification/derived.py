"""Answers worked out from the raw responses that they rest on.

A verification has to decode every raw response again. What comes of it is written as
its record would be, and where the record reads so it need not be decoded as well: it
is the answer that was derived. Any other record is read as it stands, and the check
of answers says what is wrong with it.
"""

from __future__ import annotations

from harness.candidates.recovery import recovered_outcome
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CandidateRecords
from harness.evidence.episode import Attempt, Outcome
from harness.evidence.log_line import Entry
from harness.evidence.log_reader import LogReader
from harness.verification.redaction import WithheldError


class DerivedRecords(CandidateRecords):
    """Recorded traffic, a conversation at a time."""

    def __init__(self, log: LogReader) -> None:
        super().__init__(log)
        self.withheld_attempts = 0
        """Requests whose exchanges were withheld."""
        self._echo_reasoning = False
        self._attempts: dict[str, tuple[Attempt, ...]] = {}
        """Those of this conversation, which are all decoded sooner or later."""
        self._derived: set[str] = set()

    def begin(self, *, echo_reasoning: bool) -> None:
        """Begin another conversation, whose candidate echoes reasoning or does not."""
        self._echo_reasoning = echo_reasoning
        self._attempts.clear()
        self._derived.clear()

    def is_derived(self, request_hash: str) -> bool:
        """Tell whether a request's answer is what its raw response says."""
        return request_hash in self._derived

    def attempts_of(self, request_hash: str) -> tuple[Attempt, ...]:
        """Return the exchanges of one request; () where they were withheld."""
        attempts = self._attempts.get(request_hash)
        if attempts is None:
            try:
                attempts = super().attempts_of(request_hash)
            except WithheldError:
                self.withheld_attempts += 1
                attempts = ()
            self._attempts[request_hash] = attempts
        return attempts

    def latencies_of(self, request_hash: str) -> tuple[float, ...]:
        """Return the seconds of the exchanges; () where they were withheld."""
        return tuple([each.latency_s for each in self.attempts_of(request_hash)])

    def outcome_of(self, request_hash: str) -> Outcome | None:
        """Return how a request ended, marked as replayed; None where nobody knows."""
        for entry in self.log.entries_of(request_hash, "completion"):
            derived = self._derive(request_hash, entry)
            if derived is not None:
                self._derived.add(request_hash)
                return derived.but(replayed=True)
        return super().outcome_of(request_hash)

    def _derive(self, request_hash: str, entry: Entry) -> Outcome | None:
        """Return the answer that a raw response gives, if the record reads so."""
        try:
            derived = recovered_outcome(
                request_hash,
                self.attempts_of(request_hash),
                echo_reasoning=self._echo_reasoning,
            )
            if derived is None:
                return None
            text = b'{"outcome":%b}' % derived.semantic_bytes()
        except (EvidenceError, ValueError):
            # The check of answers compares them again and names the reason.
            return None
        return derived if text == entry.payload_bytes else None
