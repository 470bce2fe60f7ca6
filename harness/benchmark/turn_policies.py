"""The nine turn policies: the shape that a conversation of each must have.

Each rule is a function from a template to what is wrong with it, so that a pack's
author sees all of it at once (`spec/executable-evaluator.md` 1.7). Confirmations
are followed here too: one answered `ask_confirm` authorizes one batch, and asking
for a slot or a correction takes the answer back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from harness.benchmark.manifest import Confirmation
from harness.benchmark.pack_tools import PackTool
from harness.benchmark.template_model import (
    Milestone,
    Template,
    TurnShape,
    placeholders_in,
    references_in,
)

Findings = Iterator[str]


def policy_findings(template: Template) -> Findings:
    """Yield what keeps the template from having its policy's shape."""
    yield from _RULES[template.turn_policy](template)
    if template.turn_policy != "dependent_call" and _has_dependency(template):
        yield "from_result is only for turn_policy dependent_call"
    if template.turn_policy != "correction" and template.updates:
        yield "slot_updates are only for turn_policy correction"


def is_confirmed(
    call: Milestone, tools: dict[str, PackTool], confirmation: Confirmation
) -> bool:
    """Tell whether a gold call states that the user has confirmed it."""
    tool = tools.get(call.tool)
    return (
        tool is not None
        and tool.requires_confirmation
        and call.arguments.get(confirmation.parameter) is True
    )


def confirmed_turns(
    template: Template, tools: dict[str, PackTool], confirmation: Confirmation
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the turns with confirmed calls: those that are earned, those not."""
    earned: list[int] = []
    unearned: list[int] = []
    open_answer = False
    for turn in template.turns:
        if any(is_confirmed(m, tools, confirmation) for m in turn.milestones):
            (earned if open_answer else unearned).append(turn.turn_index)
            open_answer = False
        if turn.type == "ask_for_slot" or _corrects(turn):
            open_answer = False
        elif turn.type == "ask_confirm" and turn.answer is not None:
            open_answer = True
    return tuple(earned), tuple(unearned)


def _corrects(turn: TurnShape) -> bool:
    return turn.answer is not None and bool(turn.answer.updates)


def _has_dependency(template: Template) -> bool:
    return any(True for call in template.calls for _ in references_in(call.arguments))


def _single_turn(template: Template) -> Findings:
    if template.simulator_turns:
        yield "single_turn has one user turn, so no user_simulator_turns"
    if not template.calls:
        yield "single_turn needs at least one tool_call"


def _multi_tool(template: Template) -> Findings:
    if len(template.calls) < 2:
        yield "multi_tool needs at least two tool_calls"


def _missing_slot(template: Template) -> Findings:
    hidden = [slot.name for slot in template.slots.values() if not slot.visible]
    if not hidden:
        yield "missing_slot needs a slot with visible_in_first_turn: false"
    if not template.calls:
        yield "missing_slot needs a tool_call once the slot is known"
    for name in hidden:
        if not _is_asked_and_answered(template, name, hidden):
            yield (
                f"missing_slot: hidden slot {name!r} is not asked for and answered "
                "(with its value) before the first tool_call"
            )


def _is_asked_and_answered(template: Template, name: str, hidden: list[str]) -> bool:
    asked = False
    for turn in template.turns:
        if turn.type == "tool_call":
            return False
        slot = turn.milestones[0].slot
        if turn.type == "ask_for_slot":
            asked = asked or slot == name or (slot is None and len(hidden) == 1)
        if asked and turn.answer is not None:
            texts = [list(texts) for texts in turn.answer.content.values()]
            if all(name in placeholders_in(wording) for wording in texts):
                return True
    return False


def _confirmation(template: Template) -> Findings:
    answered = any(
        t.type == "ask_confirm" and t.answer is not None for t in template.turns
    )
    if not answered:
        yield "confirmation needs an ask_confirm that a user turn answers"
        return
    first = next(i for i, t in enumerate(template.turns) if t.type == "ask_confirm")
    if not any(t.type == "tool_call" for t in template.turns[first + 1 :]):
        yield "confirmation needs a tool_call after the answered ask_confirm"


def _correction(template: Template) -> Findings:
    corrections = [i for i, turn in enumerate(template.turns) if _corrects(turn)]
    if not corrections:
        yield "correction needs a later user turn with slot_updates"
        return
    if not any(t.type == "tool_call" for t in template.turns[corrections[-1] + 1 :]):
        yield "correction needs a tool_call after the corrected value is known"


def _dependent_call(template: Template) -> Findings:
    if template.call_order != "strict":
        yield "dependent_call needs call_order: strict"
    if not _has_dependency(template):
        yield "dependent_call needs at least one from_result"


def _negative_path(template: Template) -> Findings:
    if not template.success_assertions:
        yield "negative_path states its refusal through an assertion"


def _no_calls_then(last: str) -> Callable[[Template], Findings]:
    def rule(template: Template) -> Findings:
        if template.calls:
            yield f"{template.turn_policy} makes no tool_call"
        if template.milestones[-1].type != last:
            yield f"{template.turn_policy} ends with {last}"

    return rule


_RULES: Final[dict[str, Callable[[Template], Findings]]] = {
    "single_turn": _single_turn,
    "multi_tool": _multi_tool,
    "missing_slot": _missing_slot,
    "confirmation": _confirmation,
    "correction": _correction,
    "dependent_call": _dependent_call,
    "negative_path": _negative_path,
    "clarify_only": _no_calls_then("ask_for_slot"),
    "irrelevant": _no_calls_then("decline"),
}
