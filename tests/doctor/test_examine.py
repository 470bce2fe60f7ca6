"""Each probe over a real socket: what is good, what costs, what nobody can tell."""

import anyio
import pytest

from harness.doctor.examine import Examination, examine
from harness.doctor.probes import PROBES, READING
from harness.doctor.words import render_examination
from tests.doctor.endpoint import answering, refusing
from tests.servers import Reply, ScriptedServer, completion, json_reply, tool_call

PATIENCE_S = 5.0
BAD_REQUEST = json_reply({"error": {"message": "no"}}, 400)


def examined(answer, **options):
    with ScriptedServer(answer) as server:

        async def run():
            return await examine(
                server.url, "m", None, **{"timeout_s": PATIENCE_S, **options}
            )

        return anyio.run(run), server


def finding(found, name):
    return next(e.finding for e in found.examined if e.probe.name == name)


def test_there_are_ten_probes_of_ten_kinds():
    assert len({probe.name for probe in PROBES}) == len(PROBES) == 10


def test_good_endpoint_is_good_in_all_ten():
    found, server = examined(answering())

    assert found.count("good") == 10, [e.finding for e in found.examined]
    assert found.exit_status == 0
    assert len(server.requests) == 10


def test_server_and_model_are_shown_where_they_tell():
    reply = completion(calls=[tool_call("get_weather", {"city": "Paris"})])
    reply.headers["Server"] = "llama.cpp/b5000"

    found, _ = examined(answering(tool_call=reply))

    assert found.server == "llama.cpp/b5000"
    assert found.served_model == "scripted"


def test_what_a_server_calls_itself_commands_no_terminal():
    names = {"server": "\x1b[2J", "served_model": "m\ndoctor: good 10"}

    shown = render_examination(Examination("http://x/v1", "m", **names, examined=()))

    assert "\x1b" not in shown
    assert [line for line in shown.split("\n") if line.startswith("doctor")] == [
        "doctor: good 0, costs 0, cannot tell 0"
    ]


CALL = tool_call("get_weather", {"city": "Paris"})
DEFECTS = {
    "no call": ("tool_call", completion("It is sunny."), "tasks that need a call"),
    "call in the text": (
        "tool_call",
        completion('<tool_call>{"name":"get_weather"}</tool_call>'),
        "no parser",
    ),
    "other value": (
        "tool_call",
        completion(calls=[tool_call("get_weather", {"city": "paris"})]),
        "other values",
    ),
    "undeclared argument": (
        "tool_call",
        completion(calls=[tool_call("get_weather", {"town": "Paris"})]),
        "schema",
    ),
    "one call of two": ("parallel_calls", completion(calls=[CALL]), "another size"),
    "ids repeat": ("parallel_calls", completion(calls=[CALL, CALL]), "ids"),
    "empty arguments": (
        "no_argument_tool",
        completion(calls=[tool_call("get_server_time", "")]),
        "unrepaired",
    ),
    "list as text": (
        "nested_arguments",
        completion(calls=[tool_call("place_order", {"customer": {}, "lines": "[]"})]),
        "schema",
    ),
    "transliterated": (
        "unicode",
        completion(calls=[tool_call("get_weather", {"city": "Zuerich"})]),
        "other values",
    ),
    "call nobody asked for": ("refusal_to_call", completion(calls=[CALL]), "in words"),
    "nothing": ("refusal_to_call", completion(""), "empty"),
    "ids refused": ("long_ids", BAD_REQUEST, "stops"),
    "result not seen": ("tool_results", completion("I do not know."), "do not reach"),
    "choice refused": ("tool_choice", BAD_REQUEST, "stops"),
    "choice ignored": ("tool_choice", completion("Hi!"), "no effect"),
    "cut and claimed whole": ("truncation", completion("1, 2, 3"), "looks whole"),
    "limit ignored": ("truncation", completion("1, 2, 3, " * 90), "not kept"),
    "envelope without choices": ("tool_results", json_reply({}), "stops"),
    "filtered": (
        "unicode",
        completion("", finish_reason="content_filter"),
        "filtered output",
    ),
    "all tokens spent on thinking": (
        "nested_arguments",
        completion("", finish_reason="length"),
        "raise max_tokens",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_defect_costs_and_says_what(defect):
    probe, reply, cost = DEFECTS[defect]

    found, _ = examined(answering(**{probe: reply}))

    bad = [e for e in found.examined if e.finding.verdict != "good"]
    assert [e.probe.name.replace("-", " ") for e in bad] == [probe.replace("_", " ")]
    assert bad[0].finding.verdict == "costs"
    assert cost in bad[0].finding.cost
    assert found.exit_status == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_endpoint_that_lets_nobody_in_is_not_examined(status):
    found, server = examined(refusing(status))

    assert found.count("cannot_tell") == 10
    assert found.exit_status == 2
    assert len(server.requests) == 1


def test_quota_that_is_gone_is_not_the_models_loss():
    found, _ = examined(refusing(402))

    assert found.exit_status == 2


@pytest.mark.slow
def test_endpoint_that_hangs_is_not_examined():
    found, server = examined(lambda _: Reply(fault="hang"), timeout_s=0.2)

    assert found.exit_status == 2
    assert found.examined[0].finding.seen.startswith("timeout")
    assert len(server.requests) == 1


def test_cost_outweighs_what_nobody_can_tell():
    answer = answering(
        tool_results=completion("I do not know."),
        truncation=json_reply({"error": {"code": "insufficient_quota"}}, 429),
    )

    found, _ = examined(answer)

    assert finding(found, "truncation").verdict == "cannot_tell"
    assert found.exit_status == 1


def test_key_is_sent_and_never_shown():
    def echo(received):
        assert received.headers["authorization"] == "Bearer drill-secret-1"
        return completion(f"drill-secret-1 {READING}")

    with ScriptedServer(echo) as server:
        found = anyio.run(lambda: examine(server.url, "m", "drill-secret-1"))

    assert found.count("costs") == 10
    assert "drill-secret-1" not in str(found)
