"""Whole runs against real servers: good, failing, lying and slow ones."""

import json
import threading

import pyarrow
import pyarrow.parquet
import pytest

from harness.canonical import hash_file
from harness.errors import ArtifactError, CandidateError, EvidenceError, StopLimitError
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.folder import RunFolder
from harness.predictions.mlperf_agentic import score_report
from tests.run.teacher_forced.conversations import (
    ASKED,
    CONVERSATIONS,
    SCORED,
    Teacher,
    TurnBench,
    bash,
    coding,
    write_dataset,
)
from tests.servers import Reply, completion, json_reply


def outage(conversation, turn):
    """A bend that fails one turn for good."""

    def bend(name, asked, _):
        if (name, asked) == (conversation, turn):
            return json_reply({"error": {"message": "no"}}, 400)
        return None

    return bend


def run_with(turns, bend=lambda *_: None, rows=CONVERSATIONS, **sections):
    """Run to the end; return what finished and the teacher."""
    teacher = Teacher(rows, bend)
    with teacher.served() as server:
        turns.base_url = server.url
        finished = turns.run(turns.config(**sections))
    return finished, teacher


def test_model_that_answers_as_recorded_scores_one(turns):
    finished, teacher = run_with(turns)

    report = finished.report
    assert report["scores"]["score"] == 1.0
    assert report["scores"]["turns"]["scored"] == SCORED
    assert report["asked"]["turns"] == {
        "planned": ASKED,
        "answered": ASKED,
        "failed": 0,
        "given_up": 0,
        "attempts": ASKED,
    }
    assert report["publication_allowed"]
    assert finished.exit_status == 0
    assert teacher.number == ASKED


def test_written_log_scores_to_the_same_files(turns, tmp_path):
    run_with(turns, outage("repo-a", 3), asking={"repeats": 2})

    score_report(turns.dataset, turns.output, tmp_path / "scored")
    score_report(turns.output / "dataset.jsonl", turns.output, tmp_path / "again")

    for name in ("scores.json", "diagnostics.json"):
        expected = (turns.output / name).read_bytes()
        assert (tmp_path / "scored" / name).read_bytes() == expected
        assert (tmp_path / "again" / name).read_bytes() == expected


def test_one_turn_of_a_conversation_is_in_flight_and_several_conversations(turns):
    together = threading.Barrier(3, timeout=10)

    def bend(_, turn, __):
        if turn == 1:
            together.wait()

    _, teacher = run_with(turns, bend, limits={"max_parallel_conversations": 3})

    assert set(teacher.most_in_flight.values()) == {1}


def test_no_more_conversations_are_in_flight_than_the_config_allows(turns):
    seen = []
    lock = threading.Lock()
    running = set()

    def bend(name, turn, _):
        with lock:
            if turn == 1:
                running.add(name)
            seen.append(len(running))
            if turn == last[name]:
                running.discard(name)

    last = {"repo-a": 5, "repo-b": 3, "sim_1": 3}
    run_with(turns, bend, limits={"max_parallel_conversations": 1})

    assert max(seen) == 1


def test_answers_of_the_model_enter_no_later_request(turns):
    def bend(*_):
        return completion("I AM THE MODEL", [bash("rm -rf model-words")])

    teacher = Teacher(bend=bend)
    with teacher.served() as server:
        turns.base_url = server.url
        turns.run(turns.config())
        bodies = [received.body for received in server.requests]

    assert len(bodies) == ASKED
    assert not any(b"MODEL" in body or b"model-words" in body for body in bodies)


def test_repeats_ask_again_under_an_id_of_their_own(turns):
    finished, teacher = run_with(turns, asking={"repeats": 3})

    names = {name for name, _ in teacher.asked}
    assert {"repo-a", "repo-a__repeat_2", "repo-a__repeat_3"} <= names
    assert set(teacher.asked.values()) == {1}
    assert finished.report["scores"]["turns"]["scored"] == 3 * SCORED
    assert turns.json("diagnostics.json")["n_repeats"] == 3


def test_failed_turn_is_zero_and_the_rest_of_its_conversation_is_asked(turns):
    finished, teacher = run_with(
        turns, outage("repo-a", 3), publication={"max_stop_share": 0.5}
    )

    report = finished.report
    assert teacher.asked["repo-a", 5] == 1
    assert report["scores"]["score"] == round(5 / 6, 4)
    assert report["answered_only"]["score"] == 1.0
    assert report["headline"] == {"score": None, "refused": ["turns_missing"]}
    assert report["publication_allowed"]
    assert report["non_publication_reasons"] == []
    assert report["asked"]["unanswered_turns"] == [
        {
            "conversation_id": "repo-a",
            "repeat": 1,
            "client_turn": 3,
            "turn": 4,
            "scored": True,
            "cause": "episode.candidate_call_failed.provider_rejected",
            "owner": "provider",
            "given_up_after": None,
            "attempts": 1,
            "http_status": 400,
            "error_type": "ProviderRejectedServerError",
        }
    ]


def test_aborting_run_gives_the_rest_of_the_conversation_up(turns):
    finished, teacher = run_with(
        turns,
        outage("repo-a", 1),
        asking={"on_failed_turn": "abort_conversation"},
        publication={"max_stop_share": 1.0},
    )

    rows = turns.json("diagnostics.json")["unanswered_turns"]
    assert {name for name, _ in teacher.asked} == {"repo-a", "repo-b", "sim_1"}
    assert teacher.asked["repo-a", 3] == teacher.asked["repo-a", 5] == 0
    assert finished.report["asked"]["turns"]["given_up"] == 2
    assert [(r["turn"], r["cause"]) for r in rows] == [
        (2, "server_error"),
        (4, "aborted_by_earlier_failure"),
        (6, "aborted_by_earlier_failure"),
    ]
    assert [
        (row["given_up_after"], row["owner"])
        for row in finished.report["asked"]["unanswered_turns"]
    ] == [(None, "provider"), (1, "provider"), (1, "provider")]


def test_too_many_unanswered_turns_leave_no_score(turns):
    finished, _ = run_with(turns, outage("sim_1", 3))

    assert "stops.share_over_cap" in finished.report["non_publication_reasons"]
    assert finished.exit_status == 9


CAUSES = {
    "status_500": (
        json_reply({}, 500),
        "episode.candidate_call_failed.provider_unavailable",
        "server_error",
    ),
    "status_429": (
        json_reply({}, 429, Retry_After="0"),
        "episode.candidate_call_failed.rate_limited",
        "server_error",
    ),
    "closed": (
        Reply(fault="close_before_response"),
        "episode.candidate_call_failed.transport_error",
        "connection",
    ),
    "no_json": (
        Reply(200, {}, b"<html>"),
        "episode.candidate_call_failed.envelope_malformed",
        "server_error",
    ),
    "two_choices": (
        json_reply(
            {
                "choices": [
                    {"message": {"content": "a"}, "finish_reason": "stop"},
                    {"message": {"content": "b"}, "finish_reason": "stop"},
                ]
            }
        ),
        "episode.candidate_call_failed.multiple_choices",
        "server_error",
    ),
    "context": (
        json_reply({"error": {"code": "context_length_exceeded"}}, 400),
        "episode.candidate_call_failed.context_length",
        "server_error",
    ),
    "filtered_prompt": (
        json_reply({"error": {"code": "content_filter"}}, 400),
        "episode.candidate_call_failed.content_filter_prompt",
        "server_error",
    ),
}


@pytest.mark.parametrize("case", CAUSES)
def test_every_unanswered_turn_has_its_cause(turns, case):
    reply, code, coarse = CAUSES[case]
    finished, _ = run_with(
        turns,
        lambda name, turn, _: reply if (name, turn) == ("repo-b", 1) else None,
        limits={"max_retries": 0},
        publication={"max_stop_share": 1.0},
    )

    (row,) = turns.json("diagnostics.json")["unanswered_turns"]
    assert finished.report["asked"]["unanswered_by_cause"] == {code: 1}
    assert (row["conversation_id"], row["turn"]) == ("repo-b", 2)
    assert row["cause"] == coarse


def test_hanging_server_costs_the_turn_and_nothing_else(turns):
    finished, _ = run_with(
        turns,
        lambda name, turn, _: (
            Reply(fault="hang") if (name, turn) == ("repo-b", 1) else None
        ),
        limits={"candidate_timeout_s": 0.4},
        publication={"max_stop_share": 1.0},
    )

    (row,) = turns.json("diagnostics.json")["unanswered_turns"]
    assert (row["cause"], row["error_type"]) == ("timeout", "TurnTimeout")
    assert finished.report["asked"]["turns"]["answered"] == ASKED - 1


def test_busy_server_is_asked_again_and_the_turn_is_answered(turns):
    refused = []

    def bend(name, turn, _):
        if (name, turn) == ("repo-a", 1) and not refused:
            refused.append(turn)
            return json_reply({}, 429, Retry_After="0")
        return None

    finished, _ = run_with(turns, bend)

    assert finished.report["scores"]["score"] == 1.0
    assert finished.report["asked"]["turns"]["attempts"] == ASKED + 1


BROKEN = {
    "calls_no_list": {"tool_calls": {"function": "bash"}},
    "calls_of_calls": {"tool_calls": [[{"index": None, "function": []}], "x"]},
    "lone_surrogate": {"content": "\ud800"},
    "content_number": {"content": 5},
    "reasoning_number": {"content": "x", "reasoning_content": 7},
    "name_number": {"tool_calls": [{"id": 1, "function": {"name": 5}}]},
    "arguments_broken": {"tool_calls": [bash("ls") | {"function": {"name": "bash"}}]},
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_answer_is_the_models_and_is_observed(turns, case):
    def bend(name, turn, _):
        if (name, turn) == ("repo-a", 3):
            message = {"role": "assistant", "content": None, **BROKEN[case]}
            choice = {"message": message, "finish_reason": "stop"}
            return json_reply({"choices": [choice]})
        return None

    finished, teacher = run_with(turns, bend)

    scores = finished.report["scores"]
    assert teacher.asked["repo-a", 3] == 1
    assert scores["turns"]["missing"] == 0
    assert scores["score"] == round(5 / 6, 4)
    assert turns.json("diagnostics.json")["lines"]["skipped"] == {}


def test_cut_answer_is_scored_by_what_it_holds(turns):
    def bend(name, turn, _):
        if (name, turn) == ("repo-a", 1):
            calls = [bash("grep repo-a-0 x")]
            return completion(None, calls, finish_reason="length")
        return None

    finished, teacher = run_with(turns, bend)

    assert finished.report["scores"]["score"] == 1.0
    assert finished.report["asked"]["answers"]["by_class"]["truncated"] == 1
    assert teacher.asked["repo-a", 1] == 1


def test_intent_is_found_in_the_reasoning_of_an_answer(turns):
    def bend(name, turn, _):
        if (name, turn) == ("sim_1", 1):
            return completion("no code", reasoning="surely intent: I001")
        return None

    finished, _ = run_with(turns, bend)

    assert finished.report["scores"]["domains"]["workflow"]["score"] == 1.0


def test_refused_key_stops_the_run_and_keeps_what_was_answered(turns):
    def bend(_, __, number):
        return json_reply({}, 401) if number > 4 else None

    limits = {"max_parallel_conversations": 1}
    with pytest.raises(CandidateError) as caught:
        run_with(turns, bend, limits=limits)
    folder = RunFolder(turns.output)

    assert caught.value.code == "eval_candidate_authentication_failed"
    assert folder.state().value == "unfinished"
    with CandidateLog.open(
        folder.file("candidate_io_cache"), writable=False
    ) as records:
        kinds = [entry.record_type for entry in records.log.entries()]
    assert kinds.count("completion") == 4


def test_run_gives_up_over_its_limit_of_stops(turns):
    with pytest.raises(StopLimitError) as caught:
        run_with(turns, lambda *_: json_reply({}, 400), limits={"max_stops": 2})

    assert caught.value.code == "eval_candidate_stop_limit"
    assert "fairtrial run CONFIG --resume" in str(caught.value)


def test_stopped_run_goes_on_and_asks_only_what_is_left(turns):
    down = []

    def bend(_, turn, __):
        return json_reply({}, 503) if turn == 3 and down else None

    down.append(True)
    teacher = Teacher(bend=bend)
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config(limits={"max_stops": 0, "max_retries": 0})
        with pytest.raises(StopLimitError):
            turns.run(config)
        answered = turns_with_completion(turns)
        down.clear()
        asked_before = dict(teacher.asked)
        with pytest.raises(ArtifactError) as refused:
            turns.run(config)
        finished = turns.run(config, resume=True)

    assert refused.value.code == "eval_run_unfinished"
    assert finished.report["scores"]["score"] == 1.0
    assert answered
    for key, count in asked_before.items():
        if key in answered:
            assert teacher.asked[key] == count


def turns_with_completion(turns):
    """Conversation and client turn of every recorded completion."""
    path = turns.output / "candidate_io_cache.jsonl"
    with CandidateLog.open(path, writable=False) as records:
        requests = [
            records.request_of(entry.key)
            for entry in records.log.entries()
            if entry.record_type == "completion"
        ]
    return {(each["task_id"], each["turn_index"]) for each in requests}


def test_finished_folder_replays_without_a_server(turns):
    teacher = Teacher(bend=outage("repo-b", 1))
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config()
        first = turns.run(config)
        before = {p.name: hash_file(p) for p in turns.output.iterdir()}
        connections = server.connections
        again = turns.run(config)

        assert server.connections == connections
    offline = turns.run(config)

    assert again.replayed
    assert offline.replayed
    assert again.report == first.report == offline.report
    assert {p.name: hash_file(p) for p in turns.output.iterdir()} == before


@pytest.mark.parametrize(
    "name",
    [
        "events.jsonl",
        "scores.json",
        "diagnostics.json",
        "sample_idx_map.json",
        "eval_report.json",
        "dataset.jsonl",
        "eval_manifest.json",
    ],
)
def test_changed_file_of_a_finished_run_is_refused(turns, name):
    run_with(turns)
    path = turns.output / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 3))

    with pytest.raises((ArtifactError, EvidenceError)) as caught:
        turns.run(turns.config())

    assert caught.value.code in {
        "eval_artifact_invalid",
        "eval_cli_artifact_conflict",
    }


def test_changed_answer_of_a_finished_run_is_refused(turns):
    run_with(turns)
    path = turns.output / "candidate_io_cache.jsonl"
    path.write_bytes(path.read_bytes().replace(b"grep repo-a-0", b"grep repo-a-9"))

    with pytest.raises(EvidenceError):
        turns.run(turns.config())


def test_folder_of_another_config_is_refused(turns):
    run_with(turns)

    with pytest.raises(ArtifactError) as caught:
        turns.run(turns.config(asking={"salt": "other"}), resume=True)

    assert caught.value.code == "eval_cli_artifact_conflict"


def test_folder_in_use_is_refused(turns):
    config = turns.config()
    folder = RunFolder(turns.output)
    folder.create()

    with folder.lock(started_at="now"), pytest.raises(EvidenceError) as caught:
        turns.run(config)

    assert caught.value.code == "eval_run_in_use"


def test_events_tell_when_each_turn_was_issued_and_answered(turns):
    run_with(turns, outage("repo-b", 3), publication={"max_stop_share": 1.0})

    events = [e for e in turns.events() if e["conversation_id"] == "repo-b"]
    assert [(e["event_type"], e["turn"]) for e in events] == [
        ("sample.issued", 1),
        ("sample.complete", 1),
        ("sample.issued", 3),
        ("error.generic", 3),
        ("sample.complete", 3),
    ]
    times = [e["timestamp_ns"] for e in events]
    assert times == sorted(times)
    assert events[1]["data"][0] == "TextModelOutput"
    assert events[1]["finish_reason"] == "tool_calls"
    assert events[4]["data"] is None
    ids = turns.json("sample_idx_map.json")["performance"]
    assert {e["sample_uuid"] for e in events} <= ids.keys()
    assert sorted(ids.values()) == list(range(ASKED))


def test_data_set_beside_a_finished_run_may_change(turns):
    run_with(turns)
    config = turns.config()
    write_dataset(turns.dataset, coding("other"))

    assert turns.run(config).replayed


def test_progress_counts_turns_and_conversations(turns):
    seen = []
    teacher = Teacher()
    with teacher.served() as server:
        turns.base_url = server.url
        turns.run(turns.config(), watch=seen.append)

    assert [each.turns for each in seen] == list(range(1, ASKED + 1))
    assert (seen[-1].conversations, seen[-1].planned_conversations) == (3, 3)


@pytest.mark.parametrize("policy", ["continue", "abort_conversation"])
def test_running_score_ends_as_the_score(turns, policy):
    seen = []

    def bend(name, turn, _):
        if (name, turn) == ("repo-a", 3):
            return json_reply({}, 400)
        if name == "repo-b":
            return completion(None, [bash("ls && grep repo-b-0 x")])
        return None

    teacher = Teacher(bend=bend)
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config(asking={"on_failed_turn": policy})
        report = turns.run(config, watch=seen.append).report

    assert round(seen[-1].score, 4) == report["scores"]["score"]
    assert 0 < seen[-1].score < 1


def test_source_id_that_ends_like_a_repeat_is_scored(turns):
    rows = coding("x__repeat_2", 2)
    write_dataset(turns.dataset, rows)
    finished, teacher = run_with(turns, rows=rows)

    assert {name for name, _ in teacher.asked} == {"x__repeat_2__repeat_1"}
    assert finished.report["scores"]["turns"]["scored"] == 2
    assert finished.report["scores"]["score"] == 1.0


def test_parquet_is_asked_as_json_lines_are(turns):
    lines, _ = run_with(turns)
    other = TurnBench(make_folder(turns.folder / "table"))
    table = pyarrow.Table.from_pylist(in_columns(CONVERSATIONS))
    pyarrow.parquet.write_table(table, other.dataset)

    finished, _ = run_with(other)

    assert finished.report["scores"] == lines.report["scores"]
    assert (other.output / "dataset.parquet").is_file()
    assert other.run(other.config()).replayed


def in_columns(rows):
    """Give every row all columns, since a table has no absent ones."""
    names = dict.fromkeys(name for each in rows for name in each)
    return [{name: each.get(name) for name in names} for each in rows]


def test_manifest_names_every_file_of_the_folder(turns):
    run_with(turns)

    manifest = turns.json("eval_manifest.json")
    named = {each["file"] for each in manifest["artifacts"].values()}
    there = {path.name for path in turns.output.iterdir()}
    assert there - named == {".lock", "eval_manifest.json"}
    for each in manifest["artifacts"].values():
        assert hash_file(turns.output / each["file"]) == each["content_hash"]


def test_requests_hold_no_key_and_no_folder(turns, monkeypatch):
    monkeypatch.setenv("TURNS_KEY", "a-very-secret-key")
    api = {"base_url": turns.base_url, "api_key_env": "TURNS_KEY"}
    teacher = Teacher()
    with teacher.served() as server:
        turns.base_url = server.url
        turns.run(turns.config(candidate={"api": {**api, "base_url": server.url}}))
        sent = {received.headers["authorization"] for received in server.requests}

    written = b"".join(p.read_bytes() for p in turns.output.iterdir())
    assert sent == {"Bearer a-very-secret-key"}
    assert b"a-very-secret-key" not in written
    assert str(turns.folder).encode() not in written


def test_missing_key_stops_before_anything_is_made(turns):
    api = {"base_url": turns.base_url, "api_key_env": "NO_SUCH_KEY_HERE"}

    with pytest.raises(CandidateError) as caught:
        turns.run(turns.config(candidate={"api": api}))

    assert caught.value.code == "eval_candidate_credentials_missing"
    assert not turns.output.exists()


def test_files_are_strict_json(turns):
    run_with(turns)

    for name in ("eval_report.json", "scores.json", "diagnostics.json"):
        text = (turns.output / name).read_text()
        assert "NaN" not in text
        assert json.loads(text)


def rewritten(path, change):
    """Write the log again, with sound hashes, its payloads changed by `change`."""
    with CandidateLog.open(path, writable=False) as records:
        entries = [
            (e.record_type, e.key, change(e.record_type, e.payload()), e.number)
            for e in records.log.entries()
        ]
    path.unlink()
    with CandidateLog.open(path, writable=True) as records:
        for kind, key, payload, number in entries:
            if payload is not None:
                records.log.append(kind, key, payload, number)


def another_text(kind, payload):
    """State another answer than the one that was received."""
    if kind == "completion":
        payload["outcome"]["response"]["text"] = "intent: I001"
    return payload


def another_body(kind, payload):
    """State another body under the hash of the one that was received."""
    if kind == "attempt":
        body = payload["attempt"]["raw_response"]
        payload["attempt"]["raw_response"] = body.replace("chatcmpl-1", "chatcmpl-2")
    return payload


@pytest.mark.parametrize("change", [another_text, another_body])
def test_answer_that_does_not_follow_from_its_bytes_is_refused(turns, change):
    run_with(turns, lambda *_: completion("none"))
    rewritten(turns.output / "candidate_io_cache.jsonl", change)

    with pytest.raises(EvidenceError) as caught:
        turns.run(turns.config())

    assert caught.value.code == "eval_candidate_cache_conflict"


def test_request_that_no_turn_accounts_for_is_refused(turns):
    run_with(turns, rows=CONVERSATIONS)
    log = turns.output / "candidate_io_cache.jsonl"
    other = TurnBench(make_folder(turns.folder / "other"))
    run_with(other, rows=CONVERSATIONS, asking={"salt": "more"})
    foreign = other.output / "candidate_io_cache.jsonl"
    with CandidateLog.open(foreign, writable=False) as records:
        entries = [
            (e.record_type, e.key, e.payload(), e.number) for e in records.log.entries()
        ]
    with CandidateLog.open(log, writable=True) as records:
        for kind, key, payload, number in entries:
            records.log.append(kind, key, payload, number)

    with pytest.raises(EvidenceError) as caught:
        turns.run(turns.config())

    assert caught.value.code == "eval_request_unaccounted"


def make_folder(path):
    path.mkdir()
    return path


def test_data_set_without_a_turn_to_ask_has_no_score(turns):
    write_dataset(turns.dataset, coding("lonely")[:1])

    finished, teacher = run_with(turns)

    assert teacher.number == 0
    assert finished.report["scores"]["score"] is None
    assert finished.report["non_publication_reasons"] == ["nothing_scorable"]
    assert not finished.report["publication_allowed"]
    assert turns.run(turns.config()).replayed


def test_run_killed_before_its_data_set_was_copied_goes_on(turns):
    teacher = Teacher()
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config()
        turns.run(config)
        for path in turns.output.iterdir():
            if path.name != "resolved_eval_config.json":
                path.unlink()
        with pytest.raises(ArtifactError):
            turns.run(config)
        finished = turns.run(config, resume=True)

    assert finished.report["scores"]["score"] == 1.0
