"""Which record of a request may follow which, in the log of candidate traffic.

A request is sent again only while no completion of it exists. So its attempts count
from 0 without a gap, none but the last is a completion, and each end follows from
the attempt before it as the client concludes it: a completion from a completion, a
failure from anything else. A request whose budget was gone before it was sent fails
without an attempt of its own. Several failures are what resumed runs leave.
"""

from __future__ import annotations

from typing import Final

from harness.evidence.episode import Attempt, Outcome
from harness.evidence.log_line import Entry
from harness.evidence.log_reader import LogReader

_REQUEST, _ATTEMPT, _COMPLETION, _FAILURE = range(4)
_ASKED: Final = [_REQUEST]
_ANSWERED: Final = [_ATTEMPT, _REQUEST]
_OUT_OF_TIME: Final = ("retry_exhausted", "episode_deadline")


def is_completion(ended: Outcome | Attempt) -> bool:
    """Tell whether something was generated and received.

    A filter's refusal counts when it withheld an output, not when it refused the
    prompt (wire contract B: completions are never asked for twice).
    """
    if ended.wire_class == "content_filter":
        return ended.detail_code != "content_filter_prompt"
    return ended.wire_class in ("ok", "candidate_malformed", "truncated")


def attempt_of(entry: Entry) -> Attempt:
    """Decode an attempt; raise EvidenceError that names the record."""
    attempt = Attempt.from_payload(entry.member("attempt"), _place(entry, "attempt"))
    if attempt.attempt_index != entry.number:
        raise entry.refusal(
            f"it is numbered {entry.number} and says {attempt.attempt_index}"
        )
    return attempt


def outcome_of(entry: Entry, *, replayed: bool = False) -> Outcome:
    """Decode how a request ended; raise EvidenceError that names the record.

    `replayed` marks what comes back so.
    """
    payload = entry.member("outcome")
    if replayed and isinstance(payload, dict) and payload.get("replayed") is False:
        payload["replayed"] = True
    outcome = Outcome.from_payload(payload, _place(entry, "outcome"))
    completed = entry.record_type == "completion"
    if is_completion(outcome) != completed or outcome.request_hash != entry.key:
        raise entry.refusal(f"it is no {entry.record_type} of its request")
    return outcome


def check_order(log: LogReader, entry: Entry) -> None:
    """Refuse a record that could not have been written where it stands.

    Only what is unusual is decoded: a retry, a failure and what follows them.
    """
    kinds = log.index.types_of(entry.key)
    kind, payload = entry.record_type, entry.payload_bytes
    if kind == "attempt":
        if (
            kinds == _ASKED
            and entry.number == 0
            and payload.startswith(b'{"attempt":{"attempt_index":0,')
        ):
            return
    elif entry.number is not None and not entry.is_withheld:
        raise entry.refusal("only attempts are numbered")
    if kind == "request":
        if kinds and any(log.entries_of(entry.key, "request")):
            raise entry.refusal("the request was recorded before", conflict=True)
    elif kind != "completion" or not (
        kinds == _ANSWERED
        and payload.startswith(b'{"outcome":{"attempt_count":1,"detail":')
    ):
        _check_against(log, entry, kinds.count(_ATTEMPT))


def _check_against(log: LogReader, entry: Entry, made: int) -> None:
    """Refuse what does not follow from the newest record of its request.

    `made` counts the attempts before it, perhaps with those of another key.
    """
    newest = next(log.entries_of(entry.key), None)
    if newest is None:
        raise entry.refusal("its request was not recorded before it")
    if newest.record_type == "completion":
        raise entry.refusal("it follows a completion of its request", conflict=True)
    if entry.record_type == "attempt":
        _check_attempt(log, entry, newest, made)
    elif not entry.is_withheld:
        _check_outcome(log, entry, newest, made)


def _check_attempt(log: LogReader, entry: Entry, newest: Entry, made: int) -> None:
    if entry.number != made:
        same = log.entries_of(entry.key, "attempt", number=entry.number)
        if entry.number is not None and any(same):
            raise entry.refusal("the attempt was recorded before", conflict=True)
        made = sum(1 for _ in log.entries_of(entry.key, "attempt"))
        if entry.number != made:
            raise entry.refusal(f"attempt {made} of its request belongs here")
    if not entry.is_withheld:
        attempt_of(entry)
    if newest.record_type != "attempt" or newest.is_withheld:
        return
    if is_completion(attempt_of(newest)):
        raise entry.refusal(
            "it follows an attempt that received a completion, and a request is sent "
            "again only while there is none",
            conflict=True,
        )


def _check_outcome(log: LogReader, entry: Entry, newest: Entry, made: int) -> None:
    outcome = outcome_of(entry)
    if outcome.attempt_count != made:
        made = sum(1 for _ in log.entries_of(entry.key, "attempt"))
        if outcome.attempt_count != made:
            raise entry.refusal(
                f"it counts {outcome.attempt_count} attempts, and {made} are recorded"
            )
    attempt = None
    if newest.record_type == "attempt":
        if newest.is_withheld:
            return
        attempt = attempt_of(newest)
    if entry.record_type == "completion":
        follows = attempt is not None and _ends(outcome) == _ends(attempt)
    else:
        if attempt is not None and is_completion(attempt):
            raise entry.refusal(
                "it follows an attempt that received a completion", conflict=True
            )
        follows = outcome.response is None and _is_failure_of(outcome, attempt)
    if not follows:
        last = "no attempt" if attempt is None else f"an attempt with {_ends(attempt)}"
        raise entry.refusal(f"{_ends(outcome)} does not follow from {last}")


def _is_failure_of(outcome: Outcome, attempt: Attempt | None) -> bool:
    """Tell whether a client concludes this from its last attempt.

    It makes none where the time of the episode is over before it begins.
    """
    if outcome.wire_class is None:
        return (outcome.status, outcome.detail_code) == ("episode_deadline", None)
    if attempt is None or attempt.wire_class != outcome.wire_class:
        return False
    if attempt.wire_class == "auth_fatal":
        return False
    detail = attempt.detail_code
    if attempt.wire_class != "transport_retryable":
        return (outcome.status, outcome.detail_code) == ("provider_rejected", detail)
    if attempt.status == "cancelled":
        detail = "timeout"
    return outcome.status in _OUT_OF_TIME and outcome.detail_code == detail


def _ends(ended: Outcome | Attempt) -> tuple[str, str | None, str | None]:
    return ended.status, ended.wire_class, ended.detail_code


def _place(entry: Entry, member: str) -> str:
    return f"{entry.log.file_name}, record {entry.sequence}, {member}"
