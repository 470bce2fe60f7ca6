"""A body that was received and never concluded is concluded, not asked for again."""

from dataclasses import replace

import pytest

from harness.candidates.recovery import recovered_outcome
from harness.errors import EvidenceError
from tests.candidates.recording import exchange
from tests.servers import Reply, ScriptedServer, completion, json_reply, tool_call

CALL = tool_call("get_weather", {"city": "Zürich"})
RECEIVED = {
    "text": completion("Hi"),
    "call": completion(calls=[CALL]),
    "reasoning": completion("Hi", reasoning_content="because"),
    "cut by length": completion("Hi", finish_reason="length"),
    "withheld by a filter": completion("Hi", finish_reason="content_filter"),
    "broken arguments": completion(calls=[tool_call("get_weather", '{"city": "Z')]),
    "repeated ids": completion(calls=[CALL, CALL]),
    "legacy call": completion("Hi", function_call={"name": "f", "arguments": "{}"}),
    "verdict of the provider": json_reply(
        {"error": {"code": "tool_use_failed", "failed_generation": "<f>"}}, status=400
    ),
    "with headers": replace(
        completion("Hi"),
        headers={"Server": "scripted/1", "X-Request-Id": "r-1"},
    ),
}
NOTHING = {
    "overload": Reply(503, body=b"busy"),
    "no completion in it": json_reply({"choices": []}),
    "cut on the wire": replace(
        completion("Hi"), fault="content_length_short", send_bytes=60
    ),
    "two choices": json_reply({"choices": [{}, {}]}),
    "prompt refused by a filter": json_reply(
        {"error": {"code": "content_filter"}}, status=400
    ),
}


def asked(reply, **options):
    with ScriptedServer([reply]) as server:
        return exchange(server.url, **options)


def recovered(exchanged, *, echo_reasoning=False):
    return recovered_outcome(
        exchanged.outcome.request_hash,
        exchanged.records.attempts,
        echo_reasoning=echo_reasoning,
    )


@pytest.mark.parametrize("echo_reasoning", [False, True])
@pytest.mark.parametrize("name", RECEIVED)
def test_recorded_body_gives_the_outcome_that_was_under_way(name, echo_reasoning):
    exchanged = asked(RECEIVED[name], echo_reasoning=echo_reasoning)

    assert recovered(exchanged, echo_reasoning=echo_reasoning) == exchanged.outcome


@pytest.mark.parametrize("name", NOTHING)
def test_attempt_without_a_completion_gives_none(name):
    assert recovered(asked(NOTHING[name])) is None


def test_request_without_an_attempt_gives_none():
    assert recovered_outcome("sha256:" + "0" * 64, (), echo_reasoning=False) is None


def test_attempts_of_an_earlier_process_are_counted():
    exchanged = asked(completion("Hi"), attempts_made=2)

    assert recovered(exchanged) == exchanged.outcome
    assert exchanged.outcome.attempt_count == 3


def test_body_that_reads_as_another_class_is_refused():
    exchanged = asked(completion("Hi"))
    (attempt,) = exchanged.records.attempts
    exchanged.records.attempts = [replace(attempt, wire_class="truncated")]

    with pytest.raises(EvidenceError) as caught:
        recovered(exchanged)

    assert caught.value.code == "eval_candidate_cache_conflict"
