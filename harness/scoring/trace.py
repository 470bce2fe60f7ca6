"""Gates 1 to 7: what the candidate proposed, against the script (spec 3.11).

Gates 1 and 2 ask for *coverage*: every gold call of the row, also those that the
conversation never reached. Gates 3 to 6 ask for *consistency* of what was asked, so
a conversation that ended early can pass them; gate 7 says whether it ended early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.scoring.gates import evidence_missing, failed, inapplicable, passed
from harness.scoring.reading import Reading, TurnReading
from harness.scoring.records import Gate, GateName


def trace_gates(reading: Reading) -> tuple[Gate, ...]:
    """Return gates 1 to 7 in order."""
    return (
        _coverage("tool_selection", reading, _selection_fault),
        _arguments(reading),
        _schema_valid(reading),
        _call_grouping(reading),
        _call_ordering(reading),
        _text_turn(reading),
        _trace_completion(reading),
    )


def _coverage(
    gate: GateName, reading: Reading, fault: Callable[[TurnReading], str]
) -> Gate:
    for turn in reading.judged:
        problem = fault(turn)
        if problem:
            return failed(gate, "candidate", turn_index=turn.index, detail=problem)
    open_turns = reading.unjudged
    if gate == "arguments":
        open_turns = tuple(t for t in open_turns if t.scripted.expects_calls)
    if open_turns and reading.withholds_evidence:
        return evidence_missing(gate)
    for turn in open_turns:
        if turn.scripted.expects_calls:
            return failed(
                gate,
                "infrastructure" if reading.booking.is_stop else "candidate",
                turn_index=turn.index,
                detail="the conversation never reached these gold calls",
            )
    return passed(gate)


def _selection_fault(turn: TurnReading) -> str:
    made, expected = len(turn.calls), len(turn.scripted.calls)
    if not expected:
        return "a call on a turn that expects text" if made else ""
    named = sum(call.name_matched for call in turn.calls)
    if named < made:
        return f"{made - named} call(s) have no gold call of their name"
    if named < expected:
        return f"{expected - named} gold call(s) were not made"
    return ""


def _arguments(reading: Reading) -> Gate:
    if not reading.call_turns:
        return inapplicable("arguments")
    return _coverage("arguments", reading, _arguments_fault)


def _arguments_fault(turn: TurnReading) -> str:
    matched = sum(call.arguments_matched for call in turn.calls)
    expected = len(turn.scripted.calls)
    if matched >= expected:
        return ""
    return f"{expected - matched} of {expected} gold call(s) have no full match"


def _schema_valid(reading: Reading) -> Gate:
    gate: GateName = "schema_valid"
    if reading.policy.argument_matching == "canonical_only":
        return inapplicable(gate)
    made = 0
    for turn in reading.judged:
        for call in turn.calls:
            made += 1
            if call.schema_failures:
                reasons = [failure["reason"] for failure in call.schema_failures]
                return failed(
                    gate,
                    "candidate",
                    turn_index=turn.index,
                    detail=f"call {call.position_in_turn}: {', '.join(reasons)}",
                )
    if made:
        return passed(gate)
    unreached = any(turn.match is None for turn in reading.call_turns)
    if unreached and reading.withholds_evidence:
        return evidence_missing(gate)
    return inapplicable(gate)


def _call_grouping(reading: Reading) -> Gate:
    if not reading.policy.respect_call_group or not reading.call_turns:
        return inapplicable("call_grouping")
    return _consistency(
        "call_grouping",
        reading,
        reading.call_turns,
        lambda turn: turn.match is not None and turn.match.group_size_matched is False,
    )


def _call_ordering(reading: Reading) -> Gate:
    script = reading.task.spec.script
    if (
        not reading.policy.respect_call_order
        or script.call_order == "any"
        or len(script.gold_calls) < 2
    ):
        return inapplicable("call_ordering")
    return _consistency(
        "call_ordering",
        reading,
        reading.call_turns,
        lambda turn: turn.match is not None and turn.match.order_respected is False,
    )


def _text_turn(reading: Reading) -> Gate:
    text_turns = tuple(t for t in reading.turns if not t.scripted.expects_calls)
    if not text_turns:
        return inapplicable("text_turn")
    return _consistency(
        "text_turn",
        reading,
        text_turns,
        lambda turn: turn.match is not None and not turn.text_matched,
    )


def _consistency(
    gate: GateName,
    reading: Reading,
    relevant: Iterable[TurnReading],
    fault: Callable[[TurnReading], bool],
) -> Gate:
    turns = tuple(relevant)
    for turn in turns:
        if fault(turn):
            detail = turn.match.detail or turn.match.order_detail if turn.match else ""
            return failed(gate, "candidate", turn_index=turn.index, detail=detail)
    if reading.withholds_evidence:
        answered = any(turn.match is not None for turn in turns)
        return passed(gate) if answered else evidence_missing(gate)
    for turn in turns:
        if turn.state == "unanswered" and gate != "call_ordering":
            return failed(
                gate,
                "infrastructure",
                turn_index=turn.index,
                detail="the turn was asked and never answered",
            )
    return passed(gate)


def _trace_completion(reading: Reading) -> Gate:
    gate: GateName = "trace_completion"
    if reading.booking.status == "completed":
        for turn in reading.judged:
            if turn.match is not None and turn.match.incomplete_finish:
                return failed(
                    gate,
                    "candidate",
                    reason_code="trace_completion.incomplete_finish_reason",
                    turn_index=turn.index,
                    detail="the episode claims completion over a cut generation",
                )
        return passed(gate)
    return failed(
        gate,
        "infrastructure" if reading.booking.is_stop else "candidate",
        turn_index=_where_it_ended(reading),
        detail=reading.booking.cause.summary,
    )


def _where_it_ended(reading: Reading) -> int | None:
    """Return the first turn that did not advance; None where all of them did."""
    for turn in reading.turns:
        if turn.observed is None or not turn.observed.advanced:
            return turn.index
    return None
