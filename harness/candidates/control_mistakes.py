"""The mistakes of the controls: one function each, gold but for one thing.

A function takes a task and returns its plan, or None where the mistake has no place
and the control stays gold. The plan states the gates that the mistaken turn fails by
itself (`spec/executable-evaluator.md` 3.6, 3.9, 3.11); what follows for the whole
episode is worked out in `control_policies`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from harness.candidates.control_answers import (
    Answer,
    Plan,
    PlannedCall,
    calls_answer,
    copied,
    departing,
    gold_answer,
    gold_answers,
)
from harness.candidates.control_arguments import (
    ChangedArgument,
    another_valid_argument,
    wrongly_typed_argument,
)
from harness.candidates.control_task import ControlTask, asked_before
from harness.canonical import Json, json_equal
from harness.conversation.script import ScriptedCall, ScriptedTurn

COVERAGE: Final = frozenset({"tool_selection", "arguments"})
"""Fail when a gold call is not made, or not by the turn that expects it."""
NO_CALL_MADE: Final = COVERAGE | {"call_grouping"}
"""A call turn without calls: nothing named, nothing matched, a group of none."""
CALL_AT_TEXT: Final = COVERAGE | {"text_turn"}
"""A call on a text turn pairs with no gold call and is no text."""
WORDS: Final = "I would rather explain this in words than use a tool."


def gold(task: ControlTask) -> Plan | None:  # noqa: ARG001
    """Behave as the published conversation."""
    return None


def silent(task: ControlTask) -> Plan | None:
    """Say nothing at every turn; no task is spared, for every turn wants something."""
    fails = NO_CALL_MADE if task.turns[0].expects_calls else frozenset({"text_turn"})
    return Plan(tuple(Answer("") for _ in task.turns), 0, fails)


def words(task: ControlTask) -> Plan | None:
    """Answer in words where calls are due; tasks without calls are spared."""
    turns = task.call_turns()
    if not turns:
        return None
    answers = tuple(
        Answer(WORDS) if turn.expects_calls else gold_answer(turn)
        for turn in task.turns
    )
    return Plan(answers, turns[0].turn_index, NO_CALL_MADE)


def eager(task: ControlTask) -> Plan | None:
    """Call at once where the script wants a text turn first."""
    for turn in task.turns:
        if not turn.expects_calls and task.calls_after(turn.turn_index):
            due = next(
                later
                for later in task.turns[turn.turn_index + 1 :]
                if later.expects_calls
            )
            return departing(
                task, turn.turn_index, gold_answer(due), fails=CALL_AT_TEXT
            )
    return None


def wrong_argument(task: ControlTask) -> Plan | None:
    """Give one argument another value that its schema allows.

    The call still pairs by name and still satisfies its schema.
    """
    return _changing(task, another_valid_argument, frozenset({"arguments"}))


def wrong_type(task: ControlTask) -> Plan | None:
    """Give one argument a value that its schema refuses.

    The call pairs by name only, and executable mode refuses what a schema refuses.
    """
    fails = frozenset({"arguments", "schema_valid"})
    return _changing(task, wrongly_typed_argument, fails, is_refused=True)


def extra_call(task: ControlTask) -> Plan | None:
    """Repeat the first call of the first call turn under another id.

    The gold calls of the turn are all made; one call more pairs with none.
    """
    for turn in task.call_turns():
        made = tuple(copied(call) for call in turn.calls)
        return departing(
            task,
            turn.turn_index,
            calls_answer((*made, made[0])),
            fails=frozenset({"tool_selection", "call_grouping"}),
        )
    return None


def missing_call(task: ControlTask) -> Plan | None:
    """Leave out the last call of a group."""
    turn = _first_group(task)
    if turn is None:
        return None
    kept = tuple(copied(call) for call in turn.calls[:-1])
    return departing(task, turn.turn_index, calls_answer(kept), fails=NO_CALL_MADE)


def swapped_order(task: ControlTask) -> Plan | None:
    """Swap two different calls of a strict task.

    Within a group the set of calls still matches, so order alone is wrong. Across
    turns another turn's calls stand where the script expects these, which is a wrong
    choice and not an order: order is judged within one message.
    """
    if task.script.call_order != "strict":
        return None
    turns = task.call_turns()
    for turn in turns:
        for position in range(1, len(turn.calls)):
            if not _same(turn.calls[0], turn.calls[position]):
                return _swapped_in_group(task, turn, position)
    for first, second in pairwise(turns):
        if not _same_group(first, second):
            return _swapped_turns(task, first, second)
    return None


def split_group(task: ControlTask) -> Plan | None:
    """Send the calls of a group one by one, a turn each.

    The script's turn sees the first call only, as if the others were missing.
    """
    turn = _first_group(task)
    if turn is None:
        return None
    single = [calls_answer((copied(call),)) for call in turn.calls]
    return departing(task, turn.turn_index, *single, fails=NO_CALL_MADE)


def early_confirm(task: ControlTask) -> Plan | None:
    """Claim the user's confirmation before the user has given it.

    Where gold first calls the tool unconfirmed, that call claims it already; else
    the confirmed call stands in place of the question.
    """
    for turn in task.call_turns():
        asked = asked_before(task.script, turn.turn_index)
        if asked is None:
            continue
        for call in turn.calls:
            if task.is_confirmed(call.function_name, call.arguments):
                return _probe_confirmed(task, call, asked) or departing(
                    task,
                    asked,
                    calls_answer((copied(call),)),
                    fails=CALL_AT_TEXT,
                )
    return None


def broken_json(task: ControlTask) -> Plan | None:
    """Send arguments that are no JSON.

    The call is named, so it pairs by name; its arguments satisfy nothing.
    """
    for turn in task.call_turns():
        first, *others = (copied(call) for call in turn.calls)
        return departing(
            task,
            turn.turn_index,
            calls_answer((replace(first, is_broken=True), *others)),
            fails=frozenset({"arguments", "schema_valid"}),
            is_refused=True,
        )
    return None


def truncated(task: ControlTask) -> Plan | None:
    """Be cut off by the token limit at the first turn, the gold message already out.

    Nothing runs.
    """
    turn = task.turns[0]
    return departing(
        task,
        0,
        replace(gold_answer(turn), finish_reason="length"),
        fails=frozenset() if turn.expects_calls else frozenset({"text_turn"}),
        is_refused=turn.expects_calls,
    )


def duplicate_ids(task: ControlTask) -> Plan | None:
    """Give all calls of a group one id; nothing runs and nothing is compared."""
    turn = _first_group(task)
    if turn is None:
        return None
    return departing(
        task,
        turn.turn_index,
        replace(gold_answer(turn), repeats_ids=True),
        fails=frozenset(),
        is_refused=True,
    )


def _changing(
    task: ControlTask,
    change: Callable[[ControlTask, str, dict[str, Json]], ChangedArgument | None],
    fails: frozenset[str],
    *,
    is_refused: bool = False,
) -> Plan | None:
    for turn in task.call_turns():
        for position, call in enumerate(turn.calls):
            changed = change(task, call.function_name, call.arguments)
            if changed is None:
                continue
            calls = [copied(other) for other in turn.calls]
            calls[position] = replace(
                calls[position], arguments=changed.arguments, changed=changed.name
            )
            return departing(
                task,
                turn.turn_index,
                calls_answer(tuple(calls)),
                fails=fails,
                is_refused=is_refused,
            )
    return None


def _first_group(task: ControlTask) -> ScriptedTurn | None:
    return next((turn for turn in task.call_turns() if len(turn.calls) > 1), None)


def _same(left: ScriptedCall, right: ScriptedCall) -> bool:
    return left.function_name == right.function_name and json_equal(
        left.arguments, right.arguments
    )


def _same_group(left: ScriptedTurn, right: ScriptedTurn) -> bool:
    return len(left.calls) == len(right.calls) and all(
        map(_same, left.calls, right.calls)
    )


def _swapped_in_group(task: ControlTask, turn: ScriptedTurn, position: int) -> Plan:
    calls = [copied(call) for call in turn.calls]
    calls[0], calls[position] = calls[position], calls[0]
    return departing(
        task,
        turn.turn_index,
        calls_answer(tuple(calls)),
        fails=frozenset({"call_ordering"}),
    )


def _swapped_turns(
    task: ControlTask, first: ScriptedTurn, second: ScriptedTurn
) -> Plan:
    answers = list(gold_answers(task))
    answers[first.turn_index] = gold_answer(second)
    answers[second.turn_index] = gold_answer(first)
    fails = COVERAGE
    if len(first.calls) != len(second.calls):
        fails |= {"call_grouping"}
    return Plan(tuple(answers), first.turn_index, fails)


def _probe_confirmed(task: ControlTask, call: ScriptedCall, asked: int) -> Plan | None:
    """Turn an unconfirmed call before the question into a confirmed one."""
    parameter = task.confirmation[call.function_name]
    for turn in task.turns[:asked]:
        for position, earlier in enumerate(turn.calls):
            if earlier.function_name != call.function_name:
                continue
            calls = [copied(other) for other in turn.calls]
            calls[position] = PlannedCall(
                earlier.function_name,
                {**earlier.arguments, parameter: True},
                earlier,
                changed=parameter,
            )
            return departing(
                task,
                turn.turn_index,
                calls_answer(tuple(calls)),
                fails=frozenset({"arguments"}),
            )
    return None
