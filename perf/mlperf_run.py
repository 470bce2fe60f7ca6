"""A made-up MLPerf-agentic run: a data set, and the log of as many turns as asked for.

Four conversations of five are coding with shell commands as agents write them, the
fifth is workflow. Answers are right, partly right, empty or absent in a fixed pattern.
A turn is some 1,100 bytes of log, as in recorded runs.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

CONVERSATIONS = 100
TURNS = 10
"""Expected turns of one conversation."""

COMMANDS = (
    "cd /testbed && grep -rn '{}' src --include=*.py | head -20",
    "cat > /tmp/check_{}.py << 'EOF'\nimport sys\nprint(sys.path)\n\nEOF\n"
    "python3 /tmp/check_{}.py",
    "sed -n '{},+40p' module/part.py; git diff --stat",
    "cd /testbed && PYTHONPATH=. python -m pytest tests/test_{}.py -q 2>&1 | tail -5",
    "find . -name '*{}*' | xargs ls -la",
    "echo done {}",
    "pip install -e . > /dev/null && git status",
)
WORDS = "The next step is to look at the part of the code that handles this case. " * 8


def _calls(number: int) -> list[dict[str, object]]:
    command = COMMANDS[number % len(COMMANDS)].replace("{}", str(number % 97))
    arguments = json.dumps({"command": command})
    function = {"name": "bash", "arguments": arguments}
    return [{"id": f"call_{number}", "type": "function", "function": function}]


def _uuid(number: int) -> str:
    return hashlib.md5(str(number).encode()).hexdigest()


def _name(conversation: int) -> str:
    if conversation % 5 == 4:
        return f"sim_{conversation}"
    return f"project__issue-{conversation}"


def _recorded(conversation: int, turn: int) -> dict[str, object]:
    number = conversation * TURNS + turn
    if conversation % 5 == 4:
        return {"content": "noted", "intent_codes": [f"I{number % 40:03}"]}
    return {"tool_calls": _calls(number)}


def _answer(conversation: int, turn: int, number: int) -> list[object] | None:
    shift = number % 3 == 1
    if number % 200 == 7:
        return None
    if conversation % 5 == 4:
        code = (conversation * TURNS + turn + shift) % 40
        return ["TextModelOutput", f"intent: I{code:03}", WORDS[:500], None]
    right = conversation * TURNS + turn
    calls = _calls(right + shift)
    if number % 6 == 1:
        calls += _calls(right)
    return ["TextModelOutput", "", WORDS, calls]


def write_run(folder: Path, turns: int) -> None:
    """Write `dataset.jsonl`, `events.jsonl` and `sample_idx_map.json`."""
    with (folder / "dataset.jsonl").open("w", encoding="ascii") as dataset:
        for conversation in range(CONVERSATIONS):
            for turn in range(TURNS):
                head = {"conversation_id": _name(conversation), "turn": 2 * turn + 1}
                print(json.dumps({**_client(conversation, turn), **head}), file=dataset)
                head["turn"] = 2 * turn + 2
                row = {"role": "assistant", **_recorded(conversation, turn), **head}
                print(json.dumps(row), file=dataset)
    with (folder / "events.jsonl").open("w", encoding="ascii") as events:
        for number in range(turns):
            for event in _events(number):
                print(json.dumps(event, separators=(",", ":")), file=events)
    index_map = {"performance": {_uuid(number): number for number in range(turns)}}
    (folder / "sample_idx_map.json").write_text(json.dumps(index_map), encoding="ascii")


def _client(conversation: int, turn: int) -> dict[str, object]:
    if turn == 0 or conversation % 5 == 4:
        return {"role": "user", "content": "go on"}
    result = {"tool_call_id": f"call_{turn}", "content": "output"}
    return {"role": "tool", "tool_results": [result]}


def _events(number: int) -> list[dict[str, object]]:
    repeat, position = divmod(number, CONVERSATIONS * TURNS)
    conversation, turn = divmod(position, TURNS)
    suffix = f"__repeat_{repeat + 1}" if repeat else ""
    place = {
        "timestamp_ns": 1_000_000 + number,
        "sample_uuid": _uuid(number),
        "conversation_id": _name(conversation) + suffix,
        "turn": 2 * turn + 1,
    }
    prompt = ["PromptData", None, None, None, None, None, None, None]
    return [
        {"event_type": "sample.issued", **place, "data": prompt},
        {
            "event_type": "sample.complete",
            **place,
            "data": _answer(conversation, turn, number),
            "finish_reason": "tool_calls",
        },
    ]
