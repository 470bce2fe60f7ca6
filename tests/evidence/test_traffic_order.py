"""A request is asked again only while no completion of it exists."""

import pytest

from harness.canonical import canonical_bytes
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.log import AppendLog
from tests.evidence.samples import attempt, completion, failure, request

ASKED = request()
HASH = ASKED.request_hash
TIMEOUT = {
    "status": "timeout",
    "wire_class": "transport_retryable",
    "detail_code": "timeout",
}
REFUSED = {
    "status": "provider_rejected",
    "wire_class": "transport_fatal",
    "detail_code": "quota_exhausted",
}
NO_KEY = {
    "status": "authentication_failed",
    "wire_class": "auth_fatal",
    "detail_code": "authentication_failed",
}
CUT_OFF = TIMEOUT | {"status": "cancelled", "detail_code": None}
ANSWERED = {"status": "completed", "wire_class": "ok", "detail_code": None}
CUT_SHORT = {
    "status": "completed",
    "wire_class": "truncated",
    "detail_code": "incomplete_finish",
}
NO_TIME = {"status": "episode_deadline", "wire_class": None, "detail_code": None}


def asked():
    return "request", {"request": {}}, None


def tried(number, fields=ANSWERED, **changes):
    record = attempt(number).but(**(fields | changes))
    return "attempt", {"attempt": record.semantic_payload()}, number


def answered(count, fields=ANSWERED):
    record = completion(HASH).but(**fields, attempt_count=count)
    return "completion", {"outcome": record.semantic_payload()}, None


def failed(count, fields, status="retry_exhausted"):
    fields = fields | {"status": status, "attempt_count": count}
    record = failure(HASH).but(**fields)
    return "failure", {"outcome": record.semantic_payload()}, None


def opened(path, *records):
    """Write records by the rules of lines alone, and open the log."""
    with written(path, *records):
        pass


def written(path, *records):
    file = path / CANDIDATE_LOG.file_name
    with AppendLog.open(file, CANDIDATE_LOG, writable=True) as raw:
        for record_type, payload, number in records:
            raw.append(record_type, HASH, canonical_bytes(payload), number)
    return CandidateLog.open(file, writable=False)


REFUSAL = failed(1, REFUSED, "provider_rejected")
WRITTEN = {
    "answered": (asked(), tried(0), answered(1)),
    "cut short": (asked(), tried(0, CUT_SHORT), answered(1, CUT_SHORT)),
    "a retry": (asked(), tried(0, TIMEOUT), tried(1), answered(2)),
    "retries used up": (asked(), tried(0, TIMEOUT), failed(1, TIMEOUT)),
    "end of the episode": (
        asked(),
        tried(0, TIMEOUT),
        failed(1, TIMEOUT, "episode_deadline"),
    ),
    "no time at all": (asked(), failed(0, NO_TIME, "episode_deadline")),
    "no time twice": (
        asked(),
        tried(0, TIMEOUT),
        failed(1, TIMEOUT),
        failed(1, NO_TIME, "episode_deadline"),
        failed(1, NO_TIME, "episode_deadline"),
    ),
    "refused": (asked(), tried(0, REFUSED), REFUSAL),
    "given up and asked again": (
        asked(),
        tried(0, REFUSED),
        REFUSAL,
        tried(1),
        answered(2),
    ),
    "killed before a refusal was noted": (
        asked(),
        tried(0, REFUSED),
        tried(1, TIMEOUT),
        failed(2, TIMEOUT),
    ),
    "stopped from outside": (asked(), tried(0, CUT_OFF), tried(1), answered(2)),
    "another key after a refused one": (
        asked(),
        tried(0, NO_KEY),
        tried(1),
        answered(2),
    ),
    "no time after a refused key": (
        asked(),
        tried(0, NO_KEY),
        failed(1, NO_TIME, "episode_deadline"),
    ),
    "killed": (asked(), tried(0, TIMEOUT), tried(1)),
}


@pytest.mark.parametrize("records", WRITTEN.values(), ids=WRITTEN)
def test_what_runs_write_is_sound(tmp_path, records):
    opened(tmp_path, *records)


CONFLICT = "eval_candidate_cache_conflict"
INVALID = "eval_candidate_cache_invalid"
FORGED = {
    "failure of an answer": (
        CONFLICT,
        (asked(), tried(0), failed(1, TIMEOUT)),
    ),
    "no time after an answer": (
        CONFLICT,
        (asked(), tried(0), failed(1, NO_TIME, "episode_deadline")),
    ),
    "an answer is asked again": (CONFLICT, (asked(), tried(0), tried(1))),
    "a cut answer is asked again": (CONFLICT, (asked(), tried(0, CUT_SHORT), tried(1))),
    "a late answer is asked again": (
        CONFLICT,
        (asked(), tried(0, TIMEOUT), tried(1), tried(2)),
    ),
    "the same number twice": (
        CONFLICT,
        (asked(), tried(0, TIMEOUT), tried(0, TIMEOUT)),
    ),
    "a first attempt that is none": (INVALID, (asked(), tried(1))),
    "a gap": (INVALID, (asked(), tried(0, TIMEOUT), tried(2))),
    "another number inside": (INVALID, (asked(), tried(0, attempt_index=1))),
    "another number inside a retry": (
        INVALID,
        (asked(), tried(0, TIMEOUT), tried(1, attempt_index=2)),
    ),
    "a completion without an attempt": (INVALID, (asked(), answered(0))),
    "a completion of a failure": (
        INVALID,
        (asked(), tried(0, TIMEOUT), tried(1, REFUSED), answered(2)),
    ),
    "a completion of another class": (
        INVALID,
        (asked(), tried(0, TIMEOUT), tried(1, CUT_SHORT), answered(2)),
    ),
    "a completion that counts wrong": (INVALID, (asked(), tried(0), answered(2))),
    "a failure that counts wrong": (
        INVALID,
        (asked(), tried(0, TIMEOUT), failed(2, TIMEOUT)),
    ),
    "a failure of nothing": (INVALID, (asked(), failed(0, TIMEOUT))),
    "a failure twice": (
        INVALID,
        (asked(), tried(0, TIMEOUT), failed(1, TIMEOUT), failed(1, TIMEOUT)),
    ),
    "a failure of another class": (
        INVALID,
        (asked(), tried(0, TIMEOUT), failed(1, REFUSED, "provider_rejected")),
    ),
    "a failure for another reason": (
        INVALID,
        (
            asked(),
            tried(0, TIMEOUT),
            failed(1, TIMEOUT | {"detail_code": "rate_limited"}),
        ),
    ),
    "a failure that no client concludes": (
        INVALID,
        (asked(), tried(0, TIMEOUT), failed(1, TIMEOUT, "timeout")),
    ),
    "a refusal as a timeout": (
        INVALID,
        (asked(), tried(0, REFUSED), failed(1, REFUSED)),
    ),
    "a refused key as an end": (
        INVALID,
        (asked(), tried(0, NO_KEY), failed(1, NO_KEY, "authentication_failed")),
    ),
    "a completion as a failure": (
        INVALID,
        (asked(), tried(0), ("failure", *answered(1)[1:])),
    ),
    "a numbered request": (INVALID, (("request", {"request": {}}, 0),)),
    "an attempt without a number": (INVALID, (asked(), (*tried(0)[:2], None))),
}


@pytest.mark.parametrize(("code", "records"), FORGED.values(), ids=FORGED)
def test_what_no_run_writes_is_refused_at_its_last_record(tmp_path, code, records):
    with pytest.raises(EvidenceError, match=f"record {len(records)}\\b") as caught:
        opened(tmp_path, *records)

    assert caught.value.code == code


@pytest.mark.parametrize(
    "end",
    [
        ("completion", *failed(1, TIMEOUT)[1:]),
        ("completion", {"outcome": completion("another").semantic_payload()}, None),
    ],
    ids=["a failure", "another request's"],
)
def test_what_is_no_completion_of_its_request_is_refused_when_it_is_read(tmp_path, end):
    with (
        written(tmp_path, asked(), tried(0), end) as log,
        pytest.raises(
            EvidenceError, match=r"(?s)record 3, .*no completion of its request"
        ),
    ):
        log.outcome_of(HASH)
