"""Where an episode first leaves the gold trace, as the smallest difference.

The place is the first turn that was asked and does not equal the script. The diff has
`-` lines for what gold has and the candidate has not, `+` lines for the reverse, and
names the innermost value that differs, never a whole call that is right but for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.canonical import Json, canonical_json, json_equal
from harness.conversation.matching import CallMatch
from harness.conversation.script import ScriptedCall
from harness.evidence.episode import ToolCall
from harness.evidence.records import Record
from harness.scoring.reading import Reading, TurnReading, expected_calls


@dataclass(frozen=True, slots=True)
class Divergence(Record):
    """The first turn that does not equal the script."""

    turn_index: int
    problem: str
    diff: tuple[str, ...]


def first_divergence(reading: Reading) -> Divergence | None:
    """Return the first divergence; None where all asked turns equal the script."""
    for turn in reading.turns:
        observed = turn.observed
        if observed is None or observed.advanced:
            continue
        if turn.match is None:
            return None
        if turn.match.matched:
            return None
        return _divergence(reading, turn, observed.text, observed.tool_calls)
    return None


def _divergence(
    reading: Reading,
    turn: TurnReading,
    text: str | None,
    tool_calls: Sequence[ToolCall],
) -> Divergence:
    match = turn.match
    gold = expected_calls(turn.scripted, reading.episode, reading.task)
    diff = tuple(_lines(turn, gold, text, tool_calls))
    details = [call.detail for call in turn.calls if call.detail]
    problem = "" if match is None else match.detail or match.order_detail
    if turn.state == "malformed":
        problem = "the message is malformed"
    return Divergence(turn.index, problem or "; ".join(details), diff)


def _lines(
    turn: TurnReading,
    gold: Sequence[ScriptedCall],
    text: str | None,
    tool_calls: Sequence[ToolCall],
) -> Iterator[str]:
    if not turn.scripted.expects_calls:
        yield "- a text and no call"
        if text or not tool_calls:
            yield from _said(text)
        for call in tool_calls:
            yield f"+ {_call(call.function_name, call)}"
        return
    by_index = {call.call_index: call for call in gold}
    taken: set[int] = set()
    for match, call in zip(turn.calls, tool_calls, strict=False):
        if match.gold_call_index is None:
            yield f"+ {_call(call.function_name, call)}"
            continue
        taken.add(match.gold_call_index)
        expected = by_index[match.gold_call_index]
        if not match.arguments_matched:
            yield f"  {expected.function_name}"
            yield from _arguments(expected, call, match)
    for expected in gold:
        if expected.call_index not in taken:
            arguments = canonical_json(expected.arguments)
            yield f"- {expected.function_name} {arguments}"
    if not tool_calls:
        yield from _said(text)
    if all(match.arguments_matched for match in turn.calls) and len(taken) == len(gold):
        yield from _order(gold, tool_calls)


def _order(gold: Sequence[ScriptedCall], made: Sequence[ToolCall]) -> Iterator[str]:
    yield "- order: " + ", ".join(call.function_name for call in gold)
    yield "+ order: " + ", ".join(str(call.function_name) for call in made)


def _said(text: str | None) -> Iterator[str]:
    yield f"+ text {canonical_json(text)}" if text else "+ nothing"


def _call(name: str | None, call: ToolCall) -> str:
    return f"{name} {_sent(call)}"


def _sent(call: ToolCall) -> str:
    if call.parsed_arguments is not None:
        return canonical_json(call.parsed_arguments)
    return f"{canonical_json(call.raw_arguments)} ({call.arguments_status})"


def _arguments(gold: ScriptedCall, call: ToolCall, match: CallMatch) -> Iterator[str]:
    """Diff what the kernel found different; a default that it filled in is equal."""
    made = call.parsed_arguments
    if made is None:
        yield f"- arguments {canonical_json(gold.arguments)}"
        yield f"+ arguments {_sent(call)}"
        return
    names = {*match.missing, *match.unexpected, *match.differing}
    yield from value_diff(
        "",
        {name: value for name, value in gold.arguments.items() if name in names},
        {name: value for name, value in made.items() if name in names},
    )
    for failure in match.schema_failures:
        yield f"! schema {canonical_json(failure)}"


def value_diff(path: str, gold: Json, made: Json) -> Iterator[str]:
    """Yield the lines of the innermost differences of two JSON values."""
    if json_equal(gold, made):
        return
    if isinstance(gold, dict) and isinstance(made, dict):
        for key in sorted(gold.keys() | made.keys()):
            inner = f"{path}.{key}" if path else key
            if key not in made:
                yield f"- {inner}: {canonical_json(gold[key])}"
            elif key not in gold:
                yield f"+ {inner}: {canonical_json(made[key])}"
            else:
                yield from value_diff(inner, gold[key], made[key])
        return
    if isinstance(gold, list) and isinstance(made, list) and len(gold) == len(made):
        for index, (left, right) in enumerate(zip(gold, made, strict=True)):
            yield from value_diff(f"{path}[{index}]", left, right)
        return
    yield f"- {path}: {canonical_json(gold)}"
    yield f"+ {path}: {canonical_json(made)}"
