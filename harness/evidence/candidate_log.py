"""`candidate_io_cache.jsonl`: everything that candidates were asked and answered.

A `request` comes first; its `attempt`s follow, one an exchange; then a `completion`
(something was generated and received) or a `failure` (nothing was). A completion is
final: nothing follows it. After a failure, a resumed run may try again. A request
whose newest attempt has no outcome is what a killed run leaves: crash evidence,
listed by `interrupted`. A resumed run concludes it from the recorded body where that
is a whole completion, and asks again where it is none.

The key is the request hash, which covers candidate, endpoint, decoding, prompt,
tools, task, trial and turn; two candidates never meet under one key.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from harness.canonical import Json
from harness.errors import EvidenceError
from harness.evidence.episode import Attempt, Outcome
from harness.evidence.log import AppendLog
from harness.evidence.log_line import Entry, LogFormat
from harness.evidence.log_reader import LogReader, TornTail
from harness.evidence.sent_request import SentRequest, check_body, request_payload
from harness.evidence.traffic_order import (
    attempt_of,
    check_order,
    is_completion,
    outcome_of,
)

CANDIDATE_LOG: Final = LogFormat(
    file_name="candidate_io_cache.jsonl",
    record_types=("request", "attempt", "completion", "failure"),
    key_field="request_hash",
    number_field="attempt_index",
    invalid_code="eval_candidate_cache_invalid",
    conflict_code="eval_candidate_cache_conflict",
)
_REQUEST, _ATTEMPT, _COMPLETION, _FAILURE = range(4)
_LATENCY: Final = re.compile(
    rb'\{"attempt":\{"attempt_index":[0-9]+,"detail_code":(?:null|"[^"\\]*"),'
    rb'"diagnostic":(?:null|"(?:[^"\\]|\\.)*"),"http_status":(?:null|[0-9]+),'
    rb'"latency_s":([0-9]{1,9}\.[0-9]+),"'
)
"""How an attempt begins: up to its latency and before the body that came."""
Visit = Callable[[LogReader, Entry], None]


@dataclass(frozen=True, slots=True)
class InterruptedRequest:
    """A request that a killed run left without an outcome."""

    request_hash: str
    task_id: str
    trial: int
    turn_index: int
    attempts: int
    """Exchanges that ended and were recorded; one more may have been under way."""


class CandidateRecords:
    """The recorded traffic of candidates, for reading."""

    def __init__(self, log: LogReader) -> None:
        self.log = log
        self.noted: NotedLatencies | None = None
        """What opening the log noted; None where it was not asked to."""

    def knows(self, request_hash: str) -> bool:
        """Tell whether anything may be recorded of a request, without reading."""
        return next(self.log.index.chain(request_hash), None) is not None

    def outcome_of(self, request_hash: str) -> Outcome | None:
        """Return the completion of a request, else its newest failure, else None.

        What comes back is marked as replayed.
        """
        newest: Entry | None = None
        for entry in self.log.entries_of(request_hash, "completion", "failure"):
            if entry.record_type == "completion":
                return outcome_of(entry, replayed=True)
            newest = newest or entry
        return None if newest is None else outcome_of(newest, replayed=True)

    def attempts_made(self, request_hash: str) -> int:
        """Count the recorded exchanges of a request."""
        return sum(1 for _ in self.log.entries_of(request_hash, "attempt"))

    def attempts_of(self, request_hash: str) -> tuple[Attempt, ...]:
        """Return the recorded exchanges of a request in the order of recording."""
        found = [
            attempt_of(entry) for entry in self.log.entries_of(request_hash, "attempt")
        ]
        return tuple(reversed(found))

    def latencies_of(self, request_hash: str) -> tuple[float, ...]:
        """Return the seconds of each recorded exchange of a request, in order.

        What was exchanged is not decoded.
        """
        noted = None if self.noted is None else self.noted.of(self.log, request_hash)
        if noted is not None:
            return noted
        entries = self.log.entries_of(request_hash, "attempt")
        return tuple([_latency_s(entry) for entry in entries][::-1])

    def request_of(self, request_hash: str) -> dict[str, Json] | None:
        """Return a recorded request: ids, `head`, `body` and their hashes."""
        for entry in self.log.entries_of(request_hash, "request"):
            request: dict[str, Json] = entry.member("request")
            return request
        return None

    def failures(self) -> int:
        """Count the requests that ended without anything received, without reading.

        One that was under way again when a process ended has its failure still.
        """
        index = self.log.index
        kinds = (set(map(index.record_type, chain)) for chain in index.chains())
        return sum(_FAILURE in found and _COMPLETION not in found for found in kinds)

    def interrupted(self) -> tuple[InterruptedRequest, ...]:
        """Return the requests that a killed run left without an outcome."""
        index = self.log.index
        open_requests: list[int] = []
        for chain in index.chains():
            kinds = [(index.record_type(record), record) for record in chain]
            requests = [record for kind, record in kinds if kind == _REQUEST]
            if len(requests) > 1 or kinds[0][0] in (_REQUEST, _ATTEMPT):
                open_requests.extend(requests)
        found = (self._interrupted(record) for record in sorted(open_requests))
        return tuple(request for request in found if request is not None)

    def _interrupted(self, record: int) -> InterruptedRequest | None:
        entry = self.log.entry(record)
        newest = next(self.log.entries_of(entry.key))
        if newest.record_type in ("completion", "failure"):
            return None
        request = entry.member("request")
        return InterruptedRequest(
            entry.key,
            request["task_id"],
            request["trial"],
            request["turn_index"],
            self.attempts_made(entry.key),
        )


class CandidateLog(CandidateRecords):
    """The log of candidate traffic; a `Recorder` and the memory of a resumed run."""

    log: AppendLog

    def __init__(self, log: AppendLog) -> None:
        super().__init__(log)
        self._asked: dict[str, int] = {}
        """Requests of this process without an outcome, known without reading; the
        number after the highest of their attempts."""

    @classmethod
    def open(cls, path: Path, *, writable: bool, visit: Visit | None = None) -> Self:
        """Open and verify the log; raise EvidenceError (see `AppendLog.open`).

        `visit` sees every record in place of `check_order`.
        """
        check = visit or check_order
        return cls(AppendLog.open(path, CANDIDATE_LOG, writable=writable, visit=check))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def torn(self) -> TornTail | None:
        """The unterminated last line that opening found."""
        return self.log.torn

    def request(self, request: SentRequest) -> None:
        """Record a request before it is sent; again for the same one is no change."""
        payload = request_payload(request)
        for known in self.log.entries_of(request.request_hash, "request"):
            if known.payload_bytes != payload:
                raise known.refusal("another request has the same hash", conflict=True)
            return
        self.log.append("request", request.request_hash, payload)
        self._asked[request.request_hash] = 0

    def attempt(self, request_hash: str, attempt: Attempt) -> None:
        """Record one exchange; raise EvidenceError after a completion."""
        payload = {"attempt": attempt.semantic_payload()}
        encoded = self.log.encode(payload)
        number = attempt.attempt_index
        following = self._asked.get(request_hash)
        if following is None or number < following:
            for known in self.log.entries_of(request_hash, "attempt", number=number):
                if known.payload_bytes != encoded:
                    raise known.refusal(
                        "another attempt has the same number", conflict=True
                    )
                return
            self._require_open(request_hash)
        self.log.append("attempt", request_hash, encoded, number)
        if following is not None:
            self._asked[request_hash] = max(following, number + 1)

    def outcome(self, outcome: Outcome) -> None:
        """Record how a request ended; an equal completion again is no change."""
        payload = {"outcome": outcome.semantic_payload()}
        if not is_completion(outcome):
            self._require_open(outcome.request_hash)
            self.log.append("failure", outcome.request_hash, payload)
            self._asked.pop(outcome.request_hash, None)
            return
        if outcome.request_hash not in self._asked:
            for known in self.log.entries_of(outcome.request_hash, "completion"):
                if replace(outcome_of(known), replayed=outcome.replayed) != outcome:
                    raise known.refusal(
                        "the request has another completion", conflict=True
                    )
                return
            self._require_open(outcome.request_hash)
        self.log.append("completion", outcome.request_hash, payload)
        self._asked.pop(outcome.request_hash, None)

    def attempts_made(self, request_hash: str) -> int:
        """Count the recorded exchanges of a request."""
        if self._asked.get(request_hash) == 0:
            return 0
        return super().attempts_made(request_hash)

    def _require_open(self, request_hash: str) -> None:
        """Refuse a record for a request that is unknown or completed."""
        if request_hash in self._asked:
            return
        for entry in self.log.entries_of(request_hash, "request", "completion"):
            if entry.record_type == "completion":
                raise entry.refusal("nothing may follow a completion", conflict=True)
            return
        raise EvidenceError(
            CANDIDATE_LOG.invalid_code,
            "a record belongs to a request that was not recorded",
            where=f"{CANDIDATE_LOG.file_name}, request {request_hash}",
            expected="the request first, then its attempts and its outcome",
            recovery="report this as a defect; nothing was written",
        )

    def sync(self) -> None:
        """Make everything recorded survive a power loss."""
        self.log.sync()

    def close(self) -> None:
        """Sync and close."""
        self.log.close()


class NotedLatencies:
    """The seconds of every exchange, noted when the log is read for the first time.

    A log of attempts is large and their latencies are few, so that whoever scores a
    whole run need not read them again. 12 bytes an attempt.
    """

    def __init__(self, check: Visit) -> None:
        self._check = check
        self._records = array("I")
        """The attempts that were noted, in order."""
        self._seconds = array("d")

    def note(self, log: LogReader, entry: Entry) -> None:
        """Check the next record and note it: what `CandidateLog.open` visits."""
        self._check(log, entry)
        if entry.record_type == "attempt":
            begin = _LATENCY.match(entry.payload_bytes)
            if begin is not None:
                self._records.append(len(log))
                self._seconds.append(float(begin[1]))

    def of(self, log: LogReader, request_hash: str) -> tuple[float, ...] | None:
        """Return a request's latencies in order; None where the log must say.

        The index knows the beginnings of keys. A chain with one request is of one key;
        in any other the records themselves tell.
        """
        chain = [*log.index.find(request_hash, (_REQUEST, _ATTEMPT), None)]
        # The oldest is the request; another one was not noted.
        attempts = chain[-2::-1]
        found = [self._seconds_of(record) for record in attempts]
        known = tuple([seconds for seconds in found if seconds is not None])
        if len(known) < len(found):
            return None
        for record in attempts:
            log.note_use(record)
        return known

    def _seconds_of(self, record: int) -> float | None:
        place = bisect_left(self._records, record)
        if place < len(self._records) and self._records[place] == record:
            return self._seconds[place]
        return None


def _latency_s(entry: Entry) -> float:
    begin = _LATENCY.match(entry.payload_bytes)
    if begin is not None:
        return float(begin[1])
    return attempt_of(entry).latency_s


def check_bodies(log: LogReader, entry: Entry) -> None:
    """Refuse what `check_order` refuses, and a request that was never its body's."""
    check_order(log, entry)
    if entry.record_type == "request":
        check_body(entry)
