"""A completion is final, a failure is not, and an open request is no answer."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canonical import canonical_json, content_hash
from harness.errors import EvidenceError
from harness.evidence.candidate_log import (
    CANDIDATE_LOG,
    CandidateLog,
    InterruptedRequest,
    NotedLatencies,
    check_order,
)
from harness.evidence.traffic_order import is_completion
from tests.evidence.samples import attempt, completion, failure, request, response

ASKED = request()
HASH = ASKED.request_hash


@pytest.fixture
def path(tmp_path):
    return tmp_path / CANDIDATE_LOG.file_name


@pytest.fixture
def log(path):
    with CandidateLog.open(path, writable=True) as opened:
        yield opened


def reopened(log):
    log.close()
    return CandidateLog.open(log.log.path, writable=True)


def ask(log, *outcomes, asked=ASKED):
    log.request(asked)
    for index, outcome in enumerate(outcomes):
        log.attempt(asked.request_hash, attempt(index))
        log.outcome(outcome)


def test_an_unknown_request_has_no_outcome(log):
    assert (log.outcome_of(HASH), log.attempts_made(HASH)) == (None, 0)


def test_a_completion_comes_back_whole_and_marked(log):
    ask(log, completion(HASH))

    assert log.outcome_of(HASH) == replace(completion(HASH), replayed=True)


def test_a_completion_survives_reopening(log):
    ask(log, completion(HASH))

    with reopened(log) as again:
        assert again.outcome_of(HASH) == replace(completion(HASH), replayed=True)


def test_the_newest_failure_stands_until_a_completion_comes(log):
    ask(log, failure(HASH, "timeout"), failure(HASH, "rate_limited"))
    before = log.outcome_of(HASH).detail_code
    log.attempt(HASH, attempt(2))
    log.outcome(completion(HASH))

    assert before == "rate_limited"
    assert log.outcome_of(HASH).status == "completed"


def test_attempts_are_counted_over_resumed_runs(log):
    log.request(ASKED)
    log.attempt(HASH, attempt(0, status="timeout"))
    with reopened(log) as again:
        again.request(ASKED)
        again.attempt(HASH, attempt(1))

        assert again.attempts_made(HASH) == 2
        assert again.attempts_of(HASH) == (attempt(0, status="timeout"), attempt(1))


@given(
    st.floats(0, 1e9),
    st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    st.none() | st.sampled_from(["a.b", "timeout"]),
    st.none() | st.integers(0, 599),
)
@settings(max_examples=40)
def test_latency_is_read_without_decoding_what_came(
    latency_s, diagnostic, detail, http_status
):
    exchange = replace(
        attempt(0),
        latency_s=latency_s,
        diagnostic=diagnostic,
        detail_code=detail,
        http_status=http_status,
        response_headers={"latency_s": "9.5"},
    )
    with (
        TemporaryDirectory() as folder,
        CandidateLog.open(Path(folder, CANDIDATE_LOG.file_name), writable=True) as log,
    ):
        log.request(ASKED)
        log.attempt(HASH, exchange)

        assert log.latencies_of(HASH) == (latency_s,)


def test_latencies_come_in_the_order_of_recording(log):
    log.request(ASKED)
    for number, latency_s in enumerate([0.5, 2.0, 0.25]):
        log.attempt(HASH, replace(attempt(number), latency_s=latency_s))

    assert log.latencies_of(HASH) == (0.5, 2.0, 0.25)


def noting(path):
    """Open a log that is read only and notes latencies."""
    noted = NotedLatencies(check_order)
    log = CandidateLog.open(path, writable=False, visit=noted.note)
    log.noted = noted
    return log


def test_noted_latencies_are_those_of_the_log_and_count_as_read(log, path):
    other = request(1)
    log.request(ASKED)
    log.request(other)
    for number, status in enumerate(["timeout", "completed"]):
        exchange = attempt(number, status=status)
        log.attempt(HASH, replace(exchange, latency_s=[0.5, 2.0][number]))
        log.attempt(other.request_hash, replace(exchange, latency_s=0.125))
    log.outcome(completion(HASH).but(attempt_count=2))
    with noting(path) as read:
        assert read.latencies_of(HASH) == (0.5, 2.0)
        assert read.latencies_of(other.request_hash) == (0.125, 0.125)
        assert read.log.use()["attempt"] == (4, 4)


def test_a_latency_of_another_form_is_read_from_its_record(log, path):
    log.request(ASKED)
    log.attempt(HASH, replace(attempt(0), latency_s=1e-9))
    with noting(path) as read:
        assert read.latencies_of(HASH) == (1e-9,)


def test_keys_that_begin_alike_are_told_apart(log, path):
    log.request(ASKED)
    log.attempt(HASH, attempt(0))
    with noting(path) as read:
        alike = HASH[:-1] + ("0" if HASH[-1] != "0" else "1")
        read.log.index.add(alike, 0, 0)

        assert read.noted.of(read.log, HASH) is None


def test_equal_records_again_are_no_change(log):
    ask(log, completion(HASH))
    size = log.log.size_bytes
    log.request(ASKED)
    log.attempt(HASH, attempt(0))
    log.outcome(completion(HASH))
    log.outcome(replace(completion(HASH), replayed=True))

    assert log.log.size_bytes == size


@pytest.mark.parametrize(
    "write",
    [
        lambda log: log.outcome(completion(HASH, "No.")),
        lambda log: log.outcome(failure(HASH)),
        lambda log: log.attempt(HASH, attempt(0, body="[]")),
        lambda log: log.attempt(HASH, attempt(1)),
        lambda log: log.request(replace(ASKED, body=b'{"model":"other"}')),
    ],
    ids=["completion", "failure after it", "attempt", "attempt after it", "request"],
)
@pytest.mark.parametrize("fresh", [True, False], ids=["same process", "reopened"])
def test_what_contradicts_a_record_is_a_conflict(log, write, fresh):
    ask(log, completion(HASH))
    opened = log if fresh else reopened(log)
    size = opened.log.size_bytes
    with opened, pytest.raises(EvidenceError) as caught:
        write(opened)

    assert caught.value.code == "eval_candidate_cache_conflict"
    assert opened.log.size_bytes == size


@pytest.mark.parametrize(
    "write",
    [
        lambda log: log.outcome(completion(HASH)),
        lambda log: log.outcome(failure(HASH)),
        lambda log: log.attempt(HASH, attempt(0)),
    ],
    ids=["completion", "failure", "attempt"],
)
def test_a_record_without_its_request_is_refused(log, write):
    with pytest.raises(EvidenceError, match="not recorded"):
        write(log)


def test_requests_of_two_candidates_never_meet(log):
    other = request(alias="words")
    ask(log, completion(HASH))

    assert log.outcome_of(other.request_hash) is None


def test_a_request_is_kept_with_the_bytes_that_were_sent(log, path):
    log.request(ASKED)
    kept = log.request_of(HASH)
    line = path.read_bytes()

    assert ASKED.body in line
    assert canonical_json(json.loads(line)) + "\n" == line.decode()
    assert content_hash({**kept["head"], "body": kept["body"]}) == HASH
    assert kept["body_hash"] == content_hash(kept["body"])
    assert kept["request_id"] == "gold:t0:0:0"


def test_a_log_keeps_the_fields_that_its_contract_names(log, path):
    ask(log, completion(HASH))
    records = [json.loads(line) for line in path.read_text().splitlines()]

    assert [(r["record_type"], list(r["payload"])) for r in records] == [
        ("request", ["request"]),
        ("attempt", ["attempt"]),
        ("completion", ["outcome"]),
    ]
    assert {r["request_hash"] for r in records} == {HASH}
    assert [r.get("attempt_index") for r in records] == [None, 0, None]


def test_a_failure_counts_until_a_completion_comes(log):
    ask(log, failure(HASH))
    log.attempt(HASH, attempt(1, status="cancelled"))
    under_way = log.failures()
    log.attempt(HASH, attempt(2))
    log.outcome(completion(HASH))

    assert (under_way, log.failures()) == (1, 0)


class TestInterrupted:
    """What a killed run leaves is listed and never read as an answer."""

    def test_a_request_without_attempts(self, log):
        log.request(ASKED)

        assert log.interrupted() == (InterruptedRequest(HASH, "t0", 0, 0, 0),)
        assert log.outcome_of(HASH) is None

    def test_attempts_without_an_outcome_even_a_completed_one(self, log):
        log.request(ASKED)
        log.attempt(HASH, attempt(0))

        assert log.interrupted() == (InterruptedRequest(HASH, "t0", 0, 0, 1),)
        assert log.outcome_of(HASH) is None

    def test_an_attempt_after_a_failure(self, log):
        ask(log, failure(HASH))
        settled = log.interrupted()
        log.attempt(HASH, attempt(1))

        assert settled == ()
        assert log.interrupted() == (InterruptedRequest(HASH, "t0", 0, 0, 2),)

    def test_answered_requests_are_not_among_them(self, log):
        for turn in range(3):
            ask(
                log,
                *([completion(request(turn).request_hash)] if turn != 1 else []),
                asked=request(turn),
            )

        assert [found.turn_index for found in log.interrupted()] == [1]


def relabelled(path, *lines):
    """Write records by their own rules but in an order that no run produces."""
    from harness.evidence.log import AppendLog

    with AppendLog.open(path, CANDIDATE_LOG, writable=True) as raw:
        for record_type, payload, number in lines:
            raw.append(record_type, HASH, payload, number)


REQUEST = ("request", {"request": {}}, None)
ATTEMPT = ("attempt", {"attempt": attempt().semantic_payload()}, 0)
COMPLETION = ("completion", {"outcome": completion(HASH).semantic_payload()}, None)
FAILURE = ("failure", {"outcome": failure(HASH).semantic_payload()}, None)


@pytest.mark.parametrize(
    "lines",
    [
        (ATTEMPT,),
        (COMPLETION,),
        (REQUEST, REQUEST),
        (REQUEST, ATTEMPT, ATTEMPT),
        (REQUEST, ATTEMPT, COMPLETION, COMPLETION),
        (REQUEST, ATTEMPT, COMPLETION, FAILURE),
        (REQUEST, ATTEMPT, COMPLETION, ATTEMPT),
    ],
    ids=lambda lines: "-".join(line[0] for line in lines),
)
def test_an_order_that_no_run_produces_is_refused(path, lines):
    relabelled(path, *lines)
    with pytest.raises(EvidenceError, match=f"record {len(lines)}, byte offset"):
        CandidateLog.open(path, writable=False)


def bytes_read_by_this_process():
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(lines[0].removeprefix("rchar: "))


def test_opening_reads_the_file_once(log, path):
    large = "x" * 100_000
    for turn in range(60):
        asked = request(turn, text=large)
        log.request(asked)
        log.attempt(asked.request_hash, attempt(0, body=large))
        log.outcome(completion(asked.request_hash, large))
    log.close()
    size = path.stat().st_size
    before = bytes_read_by_this_process()
    CandidateLog.open(path, writable=True).close()
    read = bytes_read_by_this_process() - before

    assert size > 18_000_000
    assert size <= read <= size + 10_000


@pytest.mark.parametrize(
    ("wire_class", "detail_code", "expected"),
    [
        ("ok", None, True),
        ("candidate_malformed", "arguments", True),
        ("truncated", "incomplete_finish", True),
        ("content_filter", "content_filter_output", True),
        ("content_filter", "content_filter_prompt", False),
        ("transport_retryable", "timeout", False),
        ("transport_fatal", "context_length", False),
        ("auth_fatal", "authentication_failed", False),
        (None, "episode_deadline", False),
    ],
)
def test_a_completion_is_what_was_generated_and_received(
    wire_class, detail_code, expected
):
    outcome = replace(
        completion(HASH),
        wire_class=wire_class,
        detail_code=detail_code,
        response=response() if expected else None,
    )

    assert is_completion(outcome) is expected
