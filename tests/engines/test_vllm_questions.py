"""A server that does not know a question answers it with nothing, not with a fault."""

import anyio
import pytest

from harness.engines.protocol import UNKNOWN, PromptRow
from harness.engines.vllm_questions import prompt_room, server_version
from tests.servers import Reply, ScriptedServer, json_reply

ROW = PromptRow("a", ({"role": "user", "content": "What?"},))


def _version(reply):
    with ScriptedServer([reply]) as server:
        return anyio.run(server_version, server.url.removesuffix("/v1"))


def _room(reply):
    with ScriptedServer([reply]) as server:
        found = anyio.run(prompt_room, server.url.removesuffix("/v1"), "m", ROW)
        return found, server.requests[0]


def test_version_is_what_the_server_says():
    assert _version(json_reply({"version": "1.2"})) == "1.2"


@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"version": "1.2"}, status=404),
        json_reply({"version": 1}),
        json_reply(["1.2"]),
        Reply(200, {}, b"<html>"),
        Reply(fault="close_before_response"),
    ],
    ids=["status", "number", "list", "page", "close"],
)
def test_any_other_answer_is_no_version(reply):
    assert _version(reply) == UNKNOWN


def test_room_of_a_prompt_is_the_servers_count():
    room, asked = _room(json_reply({"count": 7, "max_model_len": 20, "tokens": []}))

    assert (room.prompt_tokens, room.context_tokens) == (7, 20)
    assert asked.path.endswith("/tokenize")
    assert asked.json() == {"model": "m", "messages": [ROW.messages[0]]}


@pytest.mark.parametrize(
    "payload", [{"count": 7}, {"count": 7.0, "max_model_len": 20}, {"detail": "none"}]
)
def test_a_count_without_a_limit_is_no_room(payload):
    assert _room(json_reply(payload))[0] is None
