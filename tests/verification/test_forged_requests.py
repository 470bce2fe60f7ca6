"""A request that nothing accounts for is named, however well its hashes fit."""

import pytest

from harness.canonical import canonical_bytes, content_hash
from harness.errors import FairtrialError
from harness.evidence.log_line import decode_line, encode_line
from harness.run.replay import replay_run
from harness.verification.extras import all_extras
from harness.verification.verify import verify
from tests.verification.runs import lines_of, log_formats, make_consistent

TRAFFIC = "candidate_io_cache.jsonl"
EPISODES = "tool_trace_cache.jsonl"


def rewrite(path, edit):
    """Give every record to `edit`; write back the key and the payload it returns."""
    log = log_formats()[path.name]
    lines = []
    for number, line in enumerate(lines_of(path), 1):
        entry = decode_line(log, line[:-1], number, 0)
        key, payload = edit(entry.record_type, entry.key, entry.payload())
        written, _ = encode_line(
            log,
            sequence=number,
            record_type=entry.record_type,
            key=key,
            number=entry.number,
            payload=canonical_bytes(payload),
        )
        lines.append(written)
    path.write_bytes(b"".join(lines))


def forge_body(folder, edit, *, turn_index=0):
    """Change one sent body and everything that names it, as a forger would.

    Returns the id of the request. Where a later turn was asked, that one is taken.
    """
    renamed = {}

    def traffic(record_type, key, payload):
        if record_type == "request":
            request = payload["request"]
            if not renamed and request["turn_index"] == turn_index:
                edit(request["body"])
                request["body_hash"] = content_hash(request["body"])
                request["head"]["request_body_hash"] = request["body_hash"]
                request["request_hash"] = content_hash(request["head"])
                renamed[key] = request["request_hash"], request["request_id"]
                return request["request_hash"], payload
        elif record_type in ("completion", "failure") and key in renamed:
            payload["outcome"]["request_hash"] = renamed[key][0]
        return renamed.get(key, (key,))[0], payload

    def episodes(record_type, key, payload):
        for turn in payload.get("episode", {}).get("turns", ()):
            known = turn["request_hash"]
            turn["request_hash"] = renamed.get(known, (known,))[0]
        return key, payload

    rewrite(folder / TRAFFIC, traffic)
    if (folder / EPISODES).exists():
        rewrite(folder / EPISODES, episodes)
    make_consistent(folder)
    ((_, request_id),) = renamed.values()
    return request_id


def edit_episode(folder, edit):
    """Change episodes until `edit` says that it changed one."""
    done = []

    def change(record_type, key, payload):
        if record_type == "completion" and not done and edit(payload["episode"]):
            done.append(key)
        return key, payload

    rewrite(folder / EPISODES, change)
    make_consistent(folder)
    assert done


def violations(folder, code):
    found = verify(folder, all_extras()).findings.violations
    return [each for each in found if each.code == code]


def refusal(folder):
    with pytest.raises(FairtrialError) as caught:
        replay_run(folder)
    return caught.value


def whisper(body):
    body["messages"][0]["content"] += " The answer is 42."


def preset(body):
    body["temperature"] = 1.5


def test_forged_message_is_named_with_its_request(run):
    request_id = forge_body(run, whisper)

    (found,) = violations(run, "eval_request_unaccounted")

    assert found.where == f"{TRAFFIC}, request {request_id}, messages[0]"
    assert "The answer is 42." in found.actual
    assert "The answer is 42." not in found.expected


def test_forged_message_of_a_later_turn_is_named(run):
    request_id = forge_body(run, lambda b: b["messages"].pop(), turn_index=1)

    (found,) = violations(run, "eval_request_unaccounted")

    assert request_id in found.where
    assert found.actual == "none"


def test_forged_decoding_is_named(run):
    forge_body(run, preset)

    (found,) = violations(run, "eval_request_unaccounted")

    assert found.where.endswith("the fields beside its messages")


def test_replay_refuses_a_forged_request_by_the_same_name(run):
    forge_body(run, whisper)

    assert refusal(run).code == "eval_request_unaccounted"


def test_body_under_another_bodys_key_is_refused_by_replay(run):
    def swap(record_type, key, payload):
        if record_type == "request":
            whisper(payload["request"]["body"])
        return key, payload

    rewrite(run / TRAFFIC, swap)
    make_consistent(run)

    error = refusal(run)

    assert error.code == "eval_candidate_cache_invalid"
    assert "record 1," in error.violations[0].where


def test_body_under_another_bodys_key_is_refused_in_trace_mode(traced):
    def swap(record_type, key, payload):
        if record_type == "request":
            whisper(payload["request"]["body"])
        return key, payload

    rewrite(traced / TRAFFIC, swap)
    make_consistent(traced)

    assert refusal(traced).code == "eval_candidate_cache_invalid"


def test_forged_request_of_a_trace_is_named(traced):
    request_id = forge_body(traced, whisper)

    found = verify(traced, all_extras()).findings.violations

    assert f"{TRAFFIC}, request {request_id}" in [each.where for each in found]
    assert request_id in refusal(traced).violations[0].where


def test_turn_that_tells_another_answer_than_the_log_is_named(run):
    def flatter(episode):
        calls = [c for turn in episode["turns"] for c in turn["tool_calls"]]
        for call in calls:
            call["function_name"] = "another_tool"
        return bool(calls)

    edit_episode(run, flatter)

    assert violations(run, "eval_tool_trace_cache_invalid")
    assert refusal(run).code == "eval_tool_trace_cache_invalid"


def test_release_that_was_never_sent_is_named(run):
    def claim(episode):
        episode["released_tool_results"] += 1
        return True

    edit_episode(run, claim)

    (found,) = violations(run, "eval_tool_trace_cache_invalid")
    assert "released results" in found.expected


def test_result_that_the_candidate_was_not_told_is_named(run):
    def improve(episode):
        executions = episode["execution"]["executions"]
        told = [e for e in executions if e["released_to_model"]]
        for execution in told:
            execution["result"] = {"made": "up"}
            execution["result_hash"] = content_hash(execution["result"])
        return bool(told)

    edit_episode(run, improve)

    (found,) = violations(run, "eval_request_unaccounted")
    assert "messages[" in found.where
