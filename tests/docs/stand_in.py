"""The endpoint that pages ask where a reader has one: good probes, gold, one key.

It answers the doctor's probes, plays gold over the benchmark that the page has
published beside itself, wants a key if it was given one, and turns away every tenth
request that carries it as a busy provider does.
"""

import json

from tests.doctor.endpoint import good_reply, probe_of
from tests.run.gold_server import CountingControl
from tests.servers import ScriptedServer, completion, json_reply, tool_call

GOLD = "gold"


class StandIn:
    """What the server answers; `benchmark` is read when the first task comes."""

    def __init__(self, benchmark, *, key=None):
        self.benchmark = benchmark
        self.key = key
        self._gold = None

    def __call__(self, received):
        wanted = None if self.key is None else f"Bearer {self.key}"
        if received.headers.get("authorization") != wanted:
            return json_reply({"error": {"message": "wrong key"}}, 401)
        try:
            return good_reply(probe_of(json.loads(received.body)))
        except AssertionError:
            pass
        if self._gold is None:
            self._gold = CountingControl(self.benchmark, self._busy)
        return self._gold(received)

    def _busy(self, number):
        if self.key is None or number % 10:
            return None
        return json_reply({"error": {"message": "slow down"}}, 429, Retry_After="0")

    def served(self):
        """Serve it: a context manager with `.url`."""
        return ScriptedServer(self)


def first_label(received):
    """Answer a classification prompt by the first label that the input names."""
    system, user = (message["content"] for message in received.json()["messages"])
    labels = system.split("\n\n")[-1].split()
    named = (label for label in labels if label in user)
    return completion(next(named, "no idea"))


def one_command(_):
    """Answer every turn with one call of a shell."""
    return completion(None, [tool_call("bash", {"command": "python3 -m pytest -q"})])
