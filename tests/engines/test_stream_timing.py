"""Rows that are answered are timed; others leave no figure behind."""

import json

import anyio
import pytest

from harness.engines.stream_timing import time_answers, time_first_texts
from tests.servers import Reply, ScriptedServer, completion, json_reply

BODY = {"model": "m", "messages": [{"role": "user", "content": "What?"}]}


def _events(*events):
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    return Reply(200, {"Content-Type": "text/event-stream"}, body)


def _delta(content):
    return json.dumps({"choices": [{"delta": {"content": content}}]})


STREAM = _events(_delta(""), _delta("a"), "[DONE]")


def _times(replies, bodies=(BODY,), timeout_s=5.0):
    with ScriptedServer(replies) as server:
        found = anyio.run(time_answers, server.url, bodies, timeout_s)
        return found, server.requests


def test_a_row_is_asked_once_streamed_and_once_whole():
    found, asked = _times([STREAM, completion("a b")])

    assert len(found.first_token_s) == len(found.tokens_and_s) == 1
    assert found.tokens_and_s[0][0] == 1
    assert [request.json().get("stream") for request in asked] == [True, None]


@pytest.mark.parametrize(
    "stream",
    [
        _events("[DONE]"),
        _events(_delta(None), "{}", '{"choices": []}', "no json"),
        json_reply({"error": {}}, status=400),
    ],
    ids=["empty", "no-text", "refused"],
)
def test_a_stream_without_text_gives_no_first_token(stream):
    found, _ = _times([stream, completion("a")])

    assert found.first_token_s == []
    assert len(found.tokens_and_s) == 1


@pytest.mark.parametrize(
    "whole",
    [json_reply({"choices": []}), json_reply({"usage": {"completion_tokens": 0}})],
    ids=["no-usage", "no-tokens"],
)
def test_an_answer_without_a_count_gives_no_rate(whole):
    found, _ = _times([STREAM, whole])

    assert len(found.first_token_s) == 1
    assert found.tokens_and_s == []


@pytest.mark.parametrize("fault", ["close_before_response", "hang"])
def test_a_row_without_an_answer_is_left_out(fault):
    found, _ = _times([Reply(fault=fault)], timeout_s=0.1)

    assert (found.first_token_s, found.tokens_and_s) == ([], [])


def test_a_stream_of_much_that_is_no_text_is_given_up():
    flood = Reply(200, {"Content-Type": "text/event-stream"}, b"x" * (3 << 20))
    with ScriptedServer([flood]) as server:
        found = anyio.run(time_first_texts, server.url, [BODY], 5.0, [])

    assert found == []
