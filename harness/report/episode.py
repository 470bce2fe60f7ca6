"""One episode as text: what was sent, what came back, what it earned, whose it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.canonical import Json, canonical_json
from harness.report.terminal import table, wrap
from harness.visible_text import visible

INDENT: Final = "    "


def render_episode(payload: Mapping[str, Json], *, width: int = 100) -> str:
    """Return the text of an `explain` payload, ending with a newline."""
    sections = [
        "\n".join(_head(payload, width)),
        *("\n".join(_turn(turn, width)) for turn in payload["turns"]),
        *_unasked(payload, width),
        _gates(payload, width),
        *_assertions(payload, width),
        "\n".join(_divergence(payload, width)),
        "\n".join(_blame(payload, width)),
    ]
    return "\n\n".join(sections) + "\n"


def _head(payload: Mapping[str, Json], width: int) -> Iterator[str]:
    yield from wrap(
        f"Task {visible(payload['task_id'])}, candidate "
        f"{visible(payload['candidate_alias'])}, trial {payload['trial']}: "
        f"{payload['verdict']} ({payload['turn_policy']}, {payload['scope']})",
        width,
    )
    if payload["other_candidates"]:
        others = ", ".join(map(visible, payload["other_candidates"]))
        yield from wrap(f"--candidate shows another one: {others}", width)


def _turn(turn: Mapping[str, Json], width: int) -> Iterator[str]:
    yield f"Turn {turn['turn_index']}: the script has {_scripted(turn['script'])}"
    before = turn["messages_before"]
    if before:
        yield f"  sent: the {before} messages so far and"
    else:
        yield "  sent"
    for message in turn["sent"]:
        yield from _message(message, width)
    yield "  came back"
    yield from _answer(turn["answer"], width)
    for execution in turn["executions"]:
        yield from _execution(execution, width)
    yield f"  released: {turn['release_reason']}"
    for message in turn["released"] or ():
        yield from _message(message, width)


def _scripted(script: Mapping[str, Json]) -> str:
    if script["kind"] == "text":
        return "a text"
    return ", ".join(call["function_name"] for call in script["calls"])


def _message(message: Mapping[str, Json], width: int) -> Iterator[str]:
    content = message.get("content")
    text = content if isinstance(content, str) else canonical_json(content)
    yield from _block(f"{message['role']}: {text}", width)


def _answer(answer: Mapping[str, Json], width: int) -> Iterator[str]:
    attempts = answer["attempts"]
    if answer["call_status"] != "completed" or len(attempts) > 1:
        for attempt in attempts:
            yield from _block(
                f"attempt: HTTP {attempt['http_status'] or 'none'}, "
                f"{attempt['status']} {attempt['detail_code'] or ''}".rstrip(),
                width,
            )
    if answer["text"]:
        yield from _block(f"text: {answer['text']}", width)
    for call in answer["tool_calls"]:
        raw = call["raw_arguments"]
        arguments = raw if isinstance(raw, str) else canonical_json(raw)
        status = call["arguments_status"]
        note = "" if status == "valid_object" else f" ({status})"
        yield from _block(f"call: {call['function_name']} {arguments}{note}", width)
    if not answer["text"] and not answer["tool_calls"]:
        yield f"{INDENT}nothing usable"
    finish = f"finish: {answer['finish_reason']}"
    yield f"{INDENT}{visible(finish)}"
    if answer["marks"]:
        yield f"{INDENT}marks: {', '.join(answer['marks'])}"


def _execution(execution: Mapping[str, Json], width: int) -> Iterator[str]:
    yield f"  ran {visible(str(execution['function_name']))}: {execution['status']}"
    changed = "changed" if execution["state_changed"] else "unchanged"
    yield f"{INDENT}state {execution['state_commit']}, {changed}"
    if execution["status"] == "not_executed":
        yield from _block(f"because: {execution['reason_code']}", width)
    else:
        yield from _block(f"result: {canonical_json(execution['result'])}", width)


def _unasked(payload: Mapping[str, Json], width: int) -> Iterator[str]:
    turns = payload["unasked_turns"]
    if turns:
        scripted = "; ".join(map(_scripted, turns))
        lines = wrap(f"Never asked: {len(turns)} scripted turns ({scripted})", width)
        yield "\n".join(lines)


def _gates(payload: Mapping[str, Json], width: int) -> str:
    rows = [
        (
            gate["gate"],
            ", ".join(filter(None, (gate["outcome"], gate["failure_class"]))),
            "-" if gate["turn_index"] is None else gate["turn_index"],
            ": ".join(filter(None, (gate["reason_code"], gate["detail"]))),
        )
        for gate in payload["gates"]
    ]
    headers = ("gate", "outcome", "turn", "what it saw")
    return "What each gate saw\n" + table(headers, rows, width=width, indent=2)


def _assertions(payload: Mapping[str, Json], width: int) -> Iterator[str]:
    rows = [
        (each["name"], each["status"], each["reason_code"], each["detail"] or "-")
        for each in payload["assertions"]
    ]
    if rows:
        headers = ("assertion", "status", "reason", "saw")
        yield "Assertions\n" + table(headers, rows, width=width, indent=2)


def _divergence(payload: Mapping[str, Json], width: int) -> Iterator[str]:
    divergence = payload["divergence"]
    if divergence is None:
        yield "First divergence: none; every answered turn equals the script"
        return
    yield from wrap(
        f"First divergence: turn {divergence['turn_index']}; "
        f"{visible(divergence['problem'])}",
        width,
    )
    for line in divergence["diff"]:
        yield from _block(line, width)


def _blame(payload: Mapping[str, Json], width: int) -> Iterator[str]:
    blame = payload["blame"]
    yield from wrap(
        f"To blame: {blame['owner']} ({blame['cause']}). {blame['summary']}", width
    )
    divergence = payload["divergence"]
    if payload["detail"] and (
        divergence is None or payload["detail"] != divergence["problem"]
    ):
        yield from _block(payload["detail"], width)


def _block(text: str, width: int) -> Iterator[str]:
    for line in wrap(visible(text), max(width - len(INDENT), 8)):
        yield INDENT + line
