"""The fifteen control candidates by name, and what an evaluator must say of them.

A plan states the gates that its mistaken turn fails by itself. For the episode that
means (`spec/executable-evaluator.md` 3.9 to 3.11, under the published policy):

* the mismatch ends the episode, so the two completion gates fail;
* gold calls of later turns are never made, so both coverage gates fail;
* a call that the oracle never ran fails `oracle_execution`: what is no valid call,
  and what claims a confirmation in a turn that does not match;
* nothing else fails: turns that were not reached are not asked, no dependency is
  reached unresolved, and no state becomes unknown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Literal

from harness.candidates import control_mistakes as mistakes
from harness.candidates.control_answers import Plan
from harness.candidates.control_conversation import opening_of
from harness.candidates.control_mistakes import COVERAGE
from harness.candidates.control_task import ControlTask
from harness.canonical import canonical_bytes

Mode = Literal["trace", "executable"]
Control = Callable[[ControlTask], Plan | None]

CONTROLS: Final[dict[str, Control]] = {
    "gold": mistakes.gold,
    "silent": mistakes.silent,
    "words": mistakes.words,
    "eager": mistakes.eager,
    "wrong-argument": mistakes.wrong_argument,
    "wrong-type": mistakes.wrong_type,
    "extra-call": mistakes.extra_call,
    "missing-call": mistakes.missing_call,
    "swapped-order": mistakes.swapped_order,
    "split-group": mistakes.split_group,
    "early-confirm": mistakes.early_confirm,
    "broken-json": mistakes.broken_json,
    "truncated": mistakes.truncated,
    "duplicate-ids": mistakes.duplicate_ids,
}
"""Every control that does not depend on a seed, by the name that a request gives."""

MIXTURE: Final = "mixture"
CONTROL_NAMES: Final = (*CONTROLS, MIXTURE)


def mixed_control(task: ControlTask, seed: int) -> str:
    """Return the control that the mixture uses for a task: gold for about half.

    It depends on the opening alone, for that is what a first request shows.
    """
    drawn = hashlib.sha256(
        canonical_bytes([seed, opening_of(task.script.seed_messages)])
    ).digest()
    others = tuple(CONTROLS)[1:]
    number = int.from_bytes(drawn[:8], "big")
    return "gold" if number % 2 == 0 else others[number // 2 % len(others)]


def plan_of(name: str, task: ControlTask, seed: int) -> Plan | None:
    """Return what a control plans for a task; None where it stays gold.

    Raises KeyError for an unknown name.
    """
    return CONTROLS[mixed_control(task, seed) if name == MIXTURE else name](task)


def failed_gates(task: ControlTask, plan: Plan | None, mode: Mode) -> frozenset[str]:
    """Return the gates that fail for a task under the published scoring policy.

    A gate that is not applicable does not fail. Whether `assertions` fails is pack
    code's word, see `open_gates`.
    """
    if plan is None:
        return frozenset()
    failed = plan.fails | {"trace_completion"}
    if task.calls_after(plan.mistake_turn):
        failed |= COVERAGE
    if mode == "trace":
        return failed
    failed |= {"executable_completion"}
    if plan.is_refused or _claims_confirmation(task, plan):
        failed |= {"oracle_execution"}
    return failed


def open_gates(task: ControlTask, plan: Plan | None, mode: Mode) -> frozenset[str]:
    """Return the gates whose verdict the row alone does not tell.

    A mistake can leave the state as gold leaves it, so assertions may hold even so.
    """
    judged = plan is not None and mode == "executable" and task.has_assertions
    return frozenset({"assertions"}) if judged else frozenset()


def _claims_confirmation(task: ControlTask, plan: Plan) -> bool:
    return any(
        task.is_confirmed(call.name, call.arguments)
        for call in plan.answers[plan.mistake_turn].calls
    )
