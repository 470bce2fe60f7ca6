"""The chat engine: what an answer becomes, what is asked again, what is measured."""

import json
import threading

import anyio
import pytest

from harness.engines.chat_http import ChatHttpEngine
from harness.engines.chat_request import ChatSettings, row_request
from harness.engines.protocol import PromptRow
from harness.errors import CandidateError
from harness.evidence.candidate_log import CandidateLog
from tests.engines.greedy import GREEDY
from tests.servers import Reply, ScriptedServer, completion, json_reply

ROWS = [
    PromptRow(f"r{n}", ({"role": "user", "content": f"say {n}"},)) for n in range(5)
]
FILTERED = json_reply({"error": {"code": "content_filter"}}, status=400)


def settings(url, **changes):
    return ChatSettings(
        **{
            "alias": "under-test",
            "canonical_id": "local:m@provider_managed",
            "provider": "local",
            "provider_api_version": "v1",
            "base_url": url,
            "model": "m",
            "api_key_env": None,
            "provider_extensions": {},
            "max_in_flight": 2,
            "timeout_s": 10.0,
            "max_retries": 0,
        }
        | changes
    )


@pytest.fixture
def log(tmp_path):
    with CandidateLog.open(tmp_path / "io.jsonl", writable=True) as opened:
        yield opened


def generated(chat, log, rows=ROWS, *, subject=0):
    """Ask for rows and return what came of each, by its id."""
    found = {}

    async def work():
        async with ChatHttpEngine(chat, None, log, subject=subject) as engine:
            await engine.generate(
                rows, GREEDY, lambda each: found.update({each.row_id: each})
            )

    anyio.run(work)
    return found


def one(answer, log, **changes):
    with ScriptedServer([answer]) as server:
        return generated(settings(server.url, **changes), log, ROWS[:1])["r0"]


def test_answer_is_a_text_with_its_counts(log):
    found = one(completion(" raw\n"), log)

    assert (found.text, found.finish_reason, found.failure) == (" raw\n", "stop", None)
    assert (found.prompt_tokens, found.generated_tokens) == (1, 1)
    assert found.elapsed_s > 0


def test_endpoint_without_counts_has_none(log):
    envelope = json.loads(completion("text").body)
    del envelope["usage"]

    found = one(json_reply(envelope), log)

    assert (found.prompt_tokens, found.generated_tokens) == (None, None)


@pytest.mark.parametrize(
    ("answer", "failure", "stopped"),
    [
        (json_reply({"error": {"code": "context_length_exceeded"}}, 400), None, False),
        (FILTERED, "content_filter_prompt", True),
        (
            completion("x", finish_reason="content_filter"),
            "content_filter_output",
            False,
        ),
        (completion("x", tool_calls=[1]), "malformed_response", False),
        (Reply(500, {}, b""), "provider_unavailable", True),
        (Reply(400, {}, b""), "provider_rejected", True),
        (json_reply({"error": {}}, 402), "quota_exhausted", True),
        (Reply(fault="close_before_response"), "transport_error", True),
        (Reply(200, {}, b"{"), "envelope_malformed", True),
    ],
)
def test_row_without_an_answer_says_why_and_whose_it_is(log, answer, failure, stopped):
    found = one(answer, log)

    assert found.text is None
    assert (found.failure, found.stopped) == (failure or "context_overflow", stopped)


def test_deadline_of_a_row_makes_a_stop(log):
    found = one(Reply(fault="hang"), log, timeout_s=0.1)

    assert (found.failure, found.stopped) == ("timeout", True)


def test_no_more_rows_are_in_flight_than_the_config_says(log):
    state = {"now": 0, "most": 0}
    lock, both = threading.Lock(), threading.Barrier(2, timeout=5)

    def answer(received):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        if received.json()["messages"][0]["content"] in ("say 0", "say 1"):
            both.wait()
        with lock:
            state["now"] -= 1
        return completion("x")

    with ScriptedServer(answer) as server:
        generated(settings(server.url), log)

    assert state["most"] == 2


def test_completion_of_an_earlier_process_is_not_asked_for_again(log):
    with ScriptedServer([completion("first"), completion("second")]) as server:
        chat = settings(server.url)
        first = generated(chat, log, ROWS[:1])["r0"]
        again = generated(chat, log, ROWS[:1])["r0"]

        assert len(server.requests) == 1
    assert again == first


def test_prompt_that_was_too_long_is_not_asked_again(log):
    too_long = json_reply({"error": {"code": "context_length_exceeded"}}, status=400)
    with ScriptedServer([too_long, completion("x")]) as server:
        chat = settings(server.url)
        generated(chat, log, ROWS[:1])

        assert generated(chat, log, ROWS[:1])["r0"].failure == "context_overflow"
        assert len(server.requests) == 1


def test_stop_of_an_earlier_process_is_asked_again(log):
    with ScriptedServer([Reply(500, {}, b""), completion("x")]) as server:
        chat = settings(server.url)
        generated(chat, log, ROWS[:1])

        assert generated(chat, log, ROWS[:1])["r0"].text == "x"


def test_two_subjects_are_asked_apart(log):
    with ScriptedServer([completion("x")]) as server:
        chat = settings(server.url)
        generated(chat, log, ROWS[:1])
        generated(chat, log, ROWS[:1], subject=1)

        assert len(server.requests) == 2


def test_refused_key_ends_the_work(log):
    with (
        ScriptedServer([json_reply({}, status=401)]) as server,
        pytest.raises(CandidateError, match="authentication_failed"),
    ):
        generated(settings(server.url), log)


def test_extension_goes_into_the_body(log):
    extensions = {"local.v1": {"chat_template_kwargs": {"enable_thinking": False}}}
    with ScriptedServer([completion("x")]) as server:
        generated(settings(server.url, provider_extensions=extensions), log, ROWS[:1])

        body = server.requests[0].json()
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("field", ["top_k", "max_completion_tokens", "tools", "n"])
def test_extension_never_sets_the_decoding(log, field):
    chat = settings("http://127.0.0.1:1", provider_extensions={"local.v1": {field: 1}})

    with pytest.raises(CandidateError, match=field):
        ChatHttpEngine(chat, None, log)


def test_text_that_utf8_cannot_hold_is_refused_before_it_is_sent():
    row = PromptRow("a", ({"role": "user", "content": "\ud800"},))

    with pytest.raises(CandidateError, match="surrogates"):
        row_request(settings("http://h").endpoint(), row, 0, {})


def measured(server, log, *, answered, key=None):
    async def measure(chat):
        async with ChatHttpEngine(chat, key, log) as engine:
            if answered:
                await engine.generate(ROWS, GREEDY, lambda _: None)
            return await engine.measure(ROWS, GREEDY)

    found = anyio.run(measure, settings(server.url))
    return {each.name: each for each in found}


def test_rate_is_read_off_the_recorded_answers(log):
    with ScriptedServer([completion("x")]) as server:
        before = measured(server, log, answered=False)
        after = measured(server, log, answered=True)

    assert before["tokens_per_second"].value is None
    assert after["tokens_per_second"].value > 0
    assert "5 recorded rows" in after["tokens_per_second"].boundary


def test_warm_first_text_is_that_of_streamed_requests_with_the_key(log):
    event = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
    stream = Reply(200, {"Content-Type": "text/event-stream"}, event)
    with ScriptedServer([stream]) as server:
        figures = measured(server, log, answered=False, key="a-key-of-mine")
        sent = [each.headers["authorization"] for each in server.requests]

    assert figures["first_token_warm_s"].value > 0
    assert figures["first_token_cold_s"].value is None
    assert sent == ["Bearer a-key-of-mine"] * len(ROWS)


def test_nothing_is_claimed_of_an_endpoint(log):
    engine = ChatHttpEngine(settings("http://h"), None, log)

    assert set(engine.applied().values()) == {"unknown"}
    assert engine.conditions()["device"] == "unknown"
