"""The log of generations: one final answer a row, everything else beside it."""

from dataclasses import replace

import pytest

from harness.errors import EvidenceError
from harness.evidence.generation_log import GenerationLog, RecordedRow

ROW = RecordedRow(
    subject="candidate",
    row_id="a",
    prompt_hash="sha256:" + "0" * 64,
    text=" raw ",
    finish_reason="stop",
    failure=None,
    stopped=False,
    prompt_tokens=3,
    generated_tokens=None,
    elapsed_s=0.5,
    conditions={"engine": "chat_http"},
    applied={"temperature": "unknown"},
    session=0,
    since_start_s=0.5,
)
STOP = replace(ROW, text=None, finish_reason=None, failure="timeout", stopped=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "generation_log.jsonl"


@pytest.fixture
def log(path):
    with GenerationLog.open(path, writable=True) as opened:
        yield opened


def test_row_comes_back_as_it_was_recorded(log, path):
    log.add(ROW)
    log.log.close()

    with GenerationLog.open(path, writable=False) as again:
        assert again.row("candidate", "a") == ROW
        assert again.is_final("candidate", "a")


def test_row_of_another_subject_is_another_row(log):
    log.add(ROW)

    assert log.row("rival", "a") is None


def test_answer_replaces_the_stops_before_it(log):
    log.add(STOP)
    log.add(replace(STOP, failure="rate_limited"))
    newest = log.row("candidate", "a")
    was_final = log.is_final("candidate", "a")
    log.add(ROW)

    assert (newest.failure, was_final) == ("rate_limited", False)
    assert log.row("candidate", "a") == ROW


@pytest.mark.parametrize("second", [ROW, STOP])
def test_nothing_follows_a_final_answer(log, second):
    log.add(ROW)

    with pytest.raises(EvidenceError, match="final answer"):
        log.add(second)


def test_withdrawn_row_is_open_until_it_is_answered_again(log, path):
    log.add(ROW)
    log.withdraw(ROW)
    between = log.row("candidate", "a"), log.is_final("candidate", "a")
    again = replace(ROW, text="again")
    log.add(again)
    log.log.close()

    assert between == (None, False)
    with GenerationLog.open(path, writable=False) as opened:
        assert opened.row("candidate", "a") == again
        assert opened.is_final("candidate", "a")


@pytest.mark.parametrize("before", [(), (STOP,)])
def test_log_that_withdraws_what_is_not_final_is_refused(log, path, before):
    for row in before:
        log.add(row)
    log.withdraw(ROW)
    log.log.close()

    with pytest.raises(EvidenceError, match="withdraws what is not final"):
        GenerationLog.open(path, writable=False)


def test_log_with_two_final_answers_is_refused(log, path, tmp_path):
    log.add(ROW)
    log.add(replace(ROW, row_id="b"))
    log.log.close()
    first, _ = path.read_bytes().splitlines(keepends=True)
    forged = tmp_path / "forged.jsonl"
    forged.write_bytes(first + first)

    with pytest.raises(EvidenceError):
        GenerationLog.open(forged, writable=False)


def test_vectors_are_found_by_engine_and_text(log):
    log.add_vector("vectors", "text", [0.1, 2.0], {"device": "cpu"})

    assert log.vector("vectors", "text") == [0.1, 2.0]
    assert log.vector_conditions("vectors", "text") == {"device": "cpu"}
    assert log.vector("other", "text") is None


def test_sessions_come_in_their_order(log):
    first = log.begin("candidate", {}, {"model.safetensors": "0" * 64})
    log.add(ROW)
    second = log.begin("candidate", {}, None)

    assert (first, second) == (0, 2)
    assert [each["session"] for each in log.sessions("candidate")] == [0, 2]


def test_measurements_are_taken_once(log):
    assert log.measurements("candidate") is None

    log.add_measurements("candidate", [{"name": "load_s", "value": 1.5}])

    assert log.measurements("candidate") == [{"name": "load_s", "value": 1.5}]


def test_torn_line_is_put_aside(log, path):
    log.add(ROW)
    log.log.close()
    path.write_bytes(path.read_bytes()[:-1])

    with GenerationLog.open(path, writable=True) as again:
        assert again.torn is not None
        assert again.row("candidate", "a") is None
