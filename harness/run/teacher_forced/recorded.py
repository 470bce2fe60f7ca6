"""The evidence of a run, turn by turn, as config and data set say it must be.

Every request is made again and looked up by its hash, and every answer is read again
from the bytes that came, so a body that says anything else, a turn without an outcome,
an answer that nobody gave and a request that nothing accounts for are refused. Nothing
is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.candidates.recovery import body_of, recovered_outcome
from harness.candidates.request import PreparedRequest
from harness.canonical import hash_bytes
from harness.causes import Cause
from harness.errors import EvidenceError
from harness.evidence.candidate_log import (
    CANDIDATE_LOG,
    CandidateRecords,
)
from harness.evidence.episode import Attempt, Outcome
from harness.evidence.traffic_order import is_completion
from harness.run.teacher_forced.collect import failure_cause
from harness.run.teacher_forced.history import AskedTurn
from harness.run.teacher_forced.requests import Pass, RequestPlan


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn of one pass, and what came of it."""

    part: Pass
    turn: AskedTurn
    request: PreparedRequest
    outcome: Outcome
    """Of this turn; of the failed one before it where this one was given up."""
    attempts: tuple[Attempt, ...]
    """Of the outcome's request."""
    given_up_after: int | None
    """The client turn that failed, for a turn that was not sent because of it."""

    @property
    def cause(self) -> Cause | None:
        """Why the turn has no answer; None where it has one."""
        return failure_cause(self.outcome)


@dataclass(slots=True)
class RecordedTurns:
    """All turns of a run in the order of its passes."""

    plan: RequestPlan
    records: CandidateRecords
    aborts: bool
    """Whether a failed turn ends its pass."""
    _used: int = 0

    def walk(self) -> Iterator[RecordedTurn]:
        """Yield every turn; raise EvidenceError where evidence and plan disagree."""
        self._used = 0
        for part in self.plan.passes():
            yield from self._pass(part)
        known = sum(1 for _ in self.records.log.index.chains())
        if known != self._used:
            raise EvidenceError(
                "eval_request_unaccounted",
                "the log holds requests that no turn accounts for",
                where=CANDIDATE_LOG.file_name,
                expected=f"{self._used} requests",
                actual=f"{known}",
                recovery="bring back an intact copy of the run folder",
            )

    def _pass(self, part: Pass) -> Iterator[RecordedTurn]:
        failed: RecordedTurn | None = None
        for turn, request in self.plan.requests(part):
            if failed is not None:
                after = failed.turn.client_turn
                yield RecordedTurn(
                    part, turn, request, failed.outcome, failed.attempts, after
                )
                continue
            found = self._turn(part, turn, request)
            if self.aborts and found.cause is not None:
                failed = found
            yield found

    def _turn(
        self, part: Pass, turn: AskedTurn, request: PreparedRequest
    ) -> RecordedTurn:
        outcome = self.records.outcome_of(request.request_hash)
        if outcome is None:
            raise EvidenceError(
                "eval_candidate_cache_invalid",
                "the run never recorded how this request ended",
                where=f"{CANDIDATE_LOG.file_name}, request {request.request_id}",
                expected="a completion or a failure of it",
                recovery="use the whole folder of a finished run",
            )
        self._used += 1
        attempts = self.records.attempts_of(request.request_hash)
        self._require_received(request, outcome, attempts)
        return RecordedTurn(part, turn, request, outcome, attempts, None)

    def _require_received(
        self, request: PreparedRequest, outcome: Outcome, attempts: tuple[Attempt, ...]
    ) -> None:
        """Refuse an outcome that does not follow from the last recorded exchange."""
        last = attempts[-1] if attempts else None
        received = recovered_outcome(
            request.request_hash,
            attempts,
            echo_reasoning=self.plan.endpoint.echo_reasoning,
        )
        if last is None:
            sound = False
        elif received is None:
            sound = not is_completion(outcome) and (
                outcome.detail_code == last.detail_code
            )
        else:
            sound = received.identity_hash() == outcome.identity_hash() and (
                last.raw_response_hash == hash_bytes(body_of(last))
            )
        if not sound:
            raise EvidenceError(
                "eval_candidate_cache_conflict",
                "an outcome does not follow from what was received",
                where=f"{CANDIDATE_LOG.file_name}, request {request.request_id}",
                expected="the outcome that the last recorded exchange gives",
                actual=f"{outcome.wire_class} {outcome.detail_code or ''}".strip(),
                recovery="bring back an intact copy of the run folder",
            )
