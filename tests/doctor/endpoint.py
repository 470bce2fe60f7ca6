"""An endpoint that answers the ten probes, well or with one defect."""

import json

from harness.doctor.probes import PROBES, READING
from tests.servers import completion, json_reply, tool_call

GOOD_TEXT = {
    "refusal to call": "Hello there!",
    "long ids": f"The boiler reads {READING}.",
    "tool results": f"The boiler reads {READING}.",
}


def probe_of(body):
    """Which probe a request is."""
    for probe in PROBES:
        if (
            list(probe.messages) == body["messages"]
            and probe.max_tokens == body["max_tokens"]
        ):
            return probe
    raise AssertionError(f"not a probe: {body}")


def good_reply(probe):
    """What a good endpoint with a good model answers."""
    if probe.name == "truncation":
        return completion("1, 2, 3, 4, 5,", finish_reason="length")
    if probe.name == "tool choice":
        return completion(calls=[tool_call("get_weather", {"city": "Paris"})])
    if probe.expected:
        calls = [
            tool_call(name, arguments, f"call_{index}")
            for index, (name, arguments) in enumerate(probe.expected)
        ]
        return completion(calls=calls)
    return completion(GOOD_TEXT[probe.name])


def answering(**instead):
    """Answer well, apart from the probes named (with underscores for spaces)."""
    replies = {name.replace("_", " "): reply for name, reply in instead.items()}

    def answer(received):
        probe = probe_of(json.loads(received.body))
        return replies.get(probe.name.replace("-", " "), good_reply(probe))

    return answer


def refusing(status, **error):
    """Answer every request with one status."""
    return lambda _: json_reply({"error": {"message": "no", **error}}, status)
