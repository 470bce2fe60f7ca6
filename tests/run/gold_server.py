"""A control candidate behind a raw socket, so that a test can count and disturb."""

import json
import threading

from harness.benchmark.tables import read_rows
from harness.candidates.control import ControlCandidate
from tests.servers import Reply, ScriptedServer


class CountingControl:
    """Answers as a control does and counts what it was asked.

    `disturb(number)` may return a Reply instead of the answer to the request with
    that number (from 1); it runs before the answer is worked out.
    """

    def __init__(self, benchmark, disturb=lambda number: None):
        self.control = ControlCandidate(
            list(read_rows(benchmark / "benchmark.parquet"))
        )
        self.disturb = disturb
        self.number = 0
        """Requests so far."""
        self.answered = 0
        self._lock = threading.Lock()

    def __call__(self, received):
        with self._lock:
            self.number += 1
            number = self.number
        instead = self.disturb(number)
        if instead is not None:
            return instead
        body = received.json()
        response = self.control.respond(body["model"], body)
        with self._lock:
            self.answered += 1
        return Reply(
            response.status,
            {"Content-Type": "application/json"},
            json.dumps(response.payload).encode(),
        )

    def served(self):
        """Serve it: a context manager with `.url`."""
        return ScriptedServer(self)
