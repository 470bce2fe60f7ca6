"""Small recorded conversations, a server that answers them, and runs over both."""

import json
import re
import threading
from collections import Counter, defaultdict

import yaml

from harness.config.teacher_forced import load_teacher_forced_config
from harness.config.teacher_forced_starter import write_teacher_forced_config
from harness.run.teacher_forced.evaluate import evaluate_turns
from tests.servers import ScriptedServer, completion

BASH_TOOL = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"type": "object"}},
}


def bash(command, call_id="c1"):
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": call_id, "type": "function", "function": function}


def row(name, turn, role, **more):
    return {"conversation_id": name, "turn": turn, "role": role, **more}


def coding(name, steps=3):
    """A coding conversation of `steps` asked turns; every text in it is unique."""
    rows = [
        row(
            name,
            1,
            "user",
            content=f"{name} task",
            system=f"{name} system",
            tools=[BASH_TOOL],
        )
    ]
    for step in range(steps):
        turn = 2 * step + 2
        rows.append(
            row(
                name,
                turn,
                "assistant",
                reasoning_content=f"{name} thought {step}",
                tool_calls=[bash(f"grep {name}-{step} x", f"c{step}")],
            )
        )
        if step + 1 < steps:
            result = {"tool_call_id": f"c{step}", "content": f"{name} result {step}"}
            rows.append(
                row(name, turn + 1, "tool", tool_results=[result], delay_seconds=0.5)
            )
    return rows


def workflow(name="sim_1"):
    return [
        row(name, 1, "user", content="Which intent?", system="Classify."),
        row(name, 2, "assistant", content="intent: I001", intent_codes=["I001"]),
        row(name, 3, "user", content="And now?"),
        row(name, 4, "assistant", content="no codes here", intent_codes=[]),
    ]


CONVERSATIONS = [*coding("repo-a"), *coding("repo-b", 2), *workflow()]
ASKED = 7
"""Turns of one pass over CONVERSATIONS; the last one is excluded from the score."""
SCORED = 6


def write_dataset(path, rows=CONVERSATIONS):
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


class Teacher:
    """Answers every turn as it was recorded; `bend` may answer in its place.

    `bend(conversation, turn, number)` gets the id in the routing header, the asked
    client turn and the request's number from 1, and returns a Reply or None.
    """

    def __init__(self, rows=CONVERSATIONS, bend=lambda *_: None):
        self.rows = defaultdict(list)
        for each in rows:
            self.rows[each["conversation_id"]].append(each)
        self.bend = bend
        self.asked = Counter()
        self.most_in_flight = Counter()
        self.number = 0
        self._in_flight = Counter()
        self._lock = threading.Lock()

    def __call__(self, received):
        name = received.headers["x-session-id"]
        rows = self.rows[re.sub(r"__repeat_\d+$", "", name)] or self.rows[name]
        messages = [m for m in received.json()["messages"] if m["role"] != "system"]
        client = self._client_row(rows, len(messages))
        with self._lock:
            self.number += 1
            number = self.number
            self.asked[name, client["turn"]] += 1
            self._in_flight[name] += 1
            self.most_in_flight[name] = max(
                self.most_in_flight[name], self._in_flight[name]
            )
        try:
            reply = self.bend(name, client["turn"], number)
            return reply or gold(rows[client["turn"]])
        finally:
            with self._lock:
                self._in_flight[name] -= 1

    @staticmethod
    def _client_row(rows, count):
        seen = 0
        for each in rows:
            seen += len(each.get("tool_results", "x"))
            if seen == count:
                return each
        raise AssertionError(f"{count} messages are no prefix of the conversation")

    def served(self):
        return ScriptedServer(self)


def gold(assistant):
    """The recorded answer as a completion."""
    return completion(assistant.get("content"), assistant.get("tool_calls", ()))


class TurnBench:
    """Configs and runs over recorded conversations in one folder."""

    def __init__(self, folder, base_url="http://127.0.0.1:9/v1"):
        self.folder = folder
        self.base_url = base_url
        self.dataset = write_dataset(folder / "recorded.jsonl")

    @property
    def file(self):
        return self.folder / "eval.yaml"

    @property
    def output(self):
        return self.folder / "run"

    def config(self, **sections):
        """Write a config; each section updates that of the starter."""
        self.file.unlink(missing_ok=True)
        write_teacher_forced_config(
            self.file, dataset=self.dataset, base_url=self.base_url, model="gold"
        )
        document = yaml.safe_load(self.file.read_text())
        for name, changes in sections.items():
            place = document["candidates"][0] if name == "candidate" else document[name]
            place.update(changes)
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))
        return load_teacher_forced_config(self.file)

    def run(self, config=None, *, resume=False, watch=lambda _: None):
        return evaluate_turns(config or self.config(), resume=resume, watch=watch)

    def json(self, name):
        return json.loads((self.output / name).read_text())

    def events(self):
        text = (self.output / "events.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]
