"""A control candidate whose answers are bent in one declared way before they leave."""

import json

from harness.benchmark.tables import read_rows
from harness.candidates.control import ControlCandidate
from tests.servers import Reply, ScriptedServer


def with_extra(arguments):
    """Add an argument that no gold call has."""
    return {**arguments, "note": "please"}


def shouting(arguments):
    """Write every title in capitals, with a blank too many."""
    return {
        name: f" {value.upper()}" if name == "title" else value
        for name, value in arguments.items()
    }


def _bend_calls(message, bend):
    for call in message.get("tool_calls") or ():
        arguments = json.loads(call["function"]["arguments"])
        call["function"]["arguments"] = json.dumps(bend(arguments))


def _chat(message):
    if not message.get("tool_calls"):
        message["content"] += " Anything else?"


BENDS = {
    "extras": lambda message: _bend_calls(message, with_extra),
    "shouts": lambda message: _bend_calls(message, shouting),
    "chatty": _chat,
}


class BentControl:
    """Serves the controls, and as models of their own the bends and `stutters`.

    `stutters` sends one broken body before the first good answer of some tasks.
    """

    def __init__(self, benchmark):
        self.control = ControlCandidate(
            list(read_rows(benchmark / "benchmark.parquet"))
        )
        self.stuttered = set()

    def __call__(self, received):
        body = received.json()
        model = body["model"]
        if model == "stutters" and self._is_first(received.body, body):
            return Reply(200, {"Content-Type": "application/json"}, b"{")
        control = "gold" if model in (*BENDS, "stutters") else model
        answer = self.control.respond(control, {**body, "model": control})
        payload = json.loads(json.dumps(answer.payload))
        if model in BENDS:
            for choice in payload["choices"]:
                BENDS[model](choice["message"])
        return Reply(
            answer.status,
            {"Content-Type": "application/json"},
            json.dumps(payload).encode(),
        )

    def _is_first(self, raw, body):
        last = body["messages"][-1]["content"]
        if len(body["messages"]) > 2 or len(last) % 4 or raw in self.stuttered:
            return False
        self.stuttered.add(raw)
        return True

    def served(self):
        """Serve it: a context manager with `.url`."""
        return ScriptedServer(self)
