"""Rows without an answer: whose they are, and what a resumed run does."""

import json

import pytest

from harness.errors import ArtifactError, CandidateError, EvidenceError, StopLimitError
from harness.predict.folder import PredictFolder
from tests.predict.asking import (
    Flaky,
    Workspace,
    asked,
    chat,
    server,
)
from tests.servers import completion, json_reply

TOO_LONG = json_reply({"error": {"code": "context_length_exceeded"}}, status=400)
REFUSED = json_reply({"error": {"message": "no"}}, status=401)


@pytest.fixture
def endpoint():
    with server() as running:
        yield running


@pytest.fixture
def space(tmp_path, endpoint):
    return Workspace(tmp_path, url=endpoint.url)


def test_prompt_that_is_too_long_stays_a_failed_row(tmp_path):
    with server(Flaky("2", reply=TOO_LONG)) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

        failed = space.lines()[2]
        assert (failed["raw"], failed["failure"]) == (None, "context_overflow")
        assert sum("2" in asked(each) for each in running.requests) == 1


def test_broken_message_is_the_models_failure(tmp_path):
    broken = completion("x", tool_calls=[{"function": "foo"}])
    with server(Flaky("1", reply=broken)) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

    assert space.lines()[1]["failure"] == "malformed_response"


def test_stop_within_the_share_is_a_failed_row_and_counted(tmp_path):
    with server(Flaky("1")) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()

    assert space.lines()[1]["failure"] == "provider_unavailable"
    receipt = json.loads((space.output / "predictions.jsonl.manifest.json").read_text())
    assert (receipt["failed"], receipt["stopped"]) == (1, 1)


def test_stops_over_the_share_leave_no_score_and_a_failed_record(tmp_path):
    with server(Flaky("about")) as running:
        space = Workspace(tmp_path, url=running.url)
        with pytest.raises(StopLimitError, match="max_stop_share"):
            space.predict()

    assert not (space.output / "scores").exists()
    record = json.loads((space.output / "eval_record.json").read_text())
    assert record["status"] == "failed"


def test_only_rows_without_an_answer_are_asked_again(tmp_path):
    flaky = Flaky("1", "2")
    with server(flaky) as running:
        space = Workspace(tmp_path, url=running.url)
        space.document["engines"]["main"]["max_in_flight"] = 1
        with pytest.raises(StopLimitError):
            space.predict()
        answered = {asked(each) for each in running.requests} - {"2"}
        flaky.words.clear()
        before = len(running.requests)

        space.predict(resume=True)

        again = [asked(each) for each in running.requests[before:]]
    assert "Text: about billing, 0" in answered
    assert "Text: about billing, 0" not in again
    assert len(again) == len(set(again)) == 5
    assert [line["raw"] for line in space.lines()] == [r["gold"] for r in space.rows]


def test_record_of_a_failed_evaluation_is_kept_when_the_run_goes_on(tmp_path):
    flaky = Flaky("about")
    with server(flaky) as running:
        space = Workspace(tmp_path, url=running.url)
        with pytest.raises(StopLimitError):
            space.predict()
        failed = (space.output / "eval_record.json").read_bytes()
        flaky.words.clear()
        space.predict(resume=True)

    assert (space.output / "eval_record.failed-1.json").read_bytes() == failed


def test_refused_key_stops_the_run_and_leaves_it_resumable(tmp_path):
    flaky = Flaky("4", reply=REFUSED)
    with server(flaky) as running:
        space = Workspace(tmp_path, url=running.url)
        space.document["engines"]["main"]["max_in_flight"] = 1
        with pytest.raises(CandidateError, match="authentication_failed"):
            space.predict()
        flaky.words.clear()
        before = len(running.requests)
        space.predict(resume=True)

        assert len(running.requests) - before == 2


def test_unfinished_folder_needs_the_word(tmp_path):
    with server(Flaky("about")) as running:
        space = Workspace(tmp_path, url=running.url)
        with pytest.raises(StopLimitError):
            space.predict()
        with (
            PredictFolder(space.output).lock(started_at="now"),
            pytest.raises(EvidenceError, match="eval_run_in_use"),
        ):
            space.predict()
        with pytest.raises(ArtifactError, match="eval_run_unfinished"):
            space.predict()


def test_folder_in_use_is_refused(space):
    folder = PredictFolder(space.output)
    folder.create()

    with folder.lock(started_at="now"), pytest.raises(EvidenceError, match="in_use"):
        space.predict()


def test_missing_key_is_told_before_anything_is_made(space):
    candidate = {"api_key_env": "NO_SUCH_KEY_HERE"}
    space.document["engines"]["main"] = chat("http://127.0.0.1:1", candidate=candidate)

    with pytest.raises(CandidateError, match="NO_SUCH_KEY_HERE"):
        space.predict()

    assert not space.output.exists()
