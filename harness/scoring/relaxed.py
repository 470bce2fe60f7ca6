"""Relaxed comparisons, each a small named rule beside the contract's kernel.

A rule never judges. It rewrites a call of the candidate toward one gold call: values
that the rule holds equal become the gold call's own, arguments that it tolerates are
left out. The contract's kernel then judges the rewritten turn as it judges any other,
so a rule can only add matches, and a value that it calls equal breaks no schema.

Under a rule "equal to this gold call" is no equivalence, so calls and gold calls are
paired by a largest matching, which keeps calls in their places where they fit there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from harness.canonical import Json
from harness.conversation.matching import TurnMatch, match_turn
from harness.conversation.script import ScriptedCall, ScriptedTurn
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import ToolCall
from harness.scoring.reading import ScorableTask

RelaxedRule = Literal["int-equals-float", "extra-arguments", "strings-folded"]


def same_number(made: Json, gold: Json) -> bool:
    """Tell whether two numbers have one value; a bool is no number."""
    return type(made) in _NUMBERS and type(gold) in _NUMBERS and bool(made == gold)


def same_folded(made: Json, gold: Json) -> bool:
    """Tell whether two strings are one after NFC, case folding and blank squeezing."""
    return type(made) is str and type(gold) is str and _folded(made) == _folded(gold)


def nearer(made: Json, gold: Json, same: Callable[[Json, Json], bool]) -> Json:
    """Return the made value with each part that is `same` written as gold has it."""
    if same(made, gold):
        return gold
    if isinstance(made, dict) and isinstance(gold, dict):
        return {
            key: nearer(value, gold[key], same) if key in gold else value
            for key, value in made.items()
        }
    if isinstance(made, list) and isinstance(gold, list) and len(made) == len(gold):
        return [nearer(m, g, same) for m, g in zip(made, gold, strict=True)]
    return made


def without_extras(made: dict[str, Json], gold: dict[str, Json]) -> dict[str, Json]:
    """Return the made arguments without the top-level names that gold has not."""
    return {name: value for name, value in made.items() if name in gold}


_NUMBERS: Final = (int, float)
_REWRITE: Final[dict[RelaxedRule, Callable[[dict[str, Any], dict[str, Any]], Any]]] = {
    "int-equals-float": lambda made, gold: nearer(made, gold, same_number),
    "extra-arguments": without_extras,
    "strings-folded": lambda made, gold: nearer(made, gold, same_folded),
}


def _folded(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    return " ".join(unicodedata.normalize("NFC", composed.casefold()).split())


@dataclass(frozen=True, slots=True)
class AskedTurn:
    """One answered turn with all that the kernel needs to judge it."""

    scripted: ScriptedTurn
    expected: tuple[ScriptedCall, ...]
    """Gold calls with live values put in."""
    text: str | None
    tool_calls: tuple[ToolCall, ...]
    incomplete: bool
    issued_names: tuple[str, ...]


def judge(turn: AskedTurn, task: ScorableTask, policy: ScoringPolicy) -> TurnMatch:
    """Judge a turn by the contract's kernel."""
    return match_turn(
        turn.scripted,
        turn.expected,
        text=turn.text,
        tool_calls=turn.tool_calls,
        incomplete=turn.incomplete,
        catalog=task.catalog,
        policy=policy,
        script=task.spec.script,
        issued_names=turn.issued_names,
    )


def judge_relaxed(
    turn: AskedTurn, task: ScorableTask, policy: ScoringPolicy, rule: RelaxedRule
) -> TurnMatch:
    """Judge a turn whose calls a rule has rewritten toward their gold calls."""
    rewrites = [
        [rewrite(call, gold, rule) for gold in turn.expected]
        for call in turn.tool_calls
    ]
    pairs = largest_matching(
        [
            [
                fits(candidate, gold, turn, task, policy)
                for candidate, gold in zip(row, turn.expected, strict=True)
            ]
            for row in rewrites
        ]
    )
    calls = tuple(
        call if pair is None else rewrites[position][pair]
        for position, (call, pair) in enumerate(
            zip(turn.tool_calls, pairs, strict=True)
        )
    )
    return judge(replace(turn, tool_calls=calls), task, policy)


def rewrite(call: ToolCall, gold: ScriptedCall, rule: RelaxedRule) -> ToolCall:
    """Return a call rewritten toward a gold call of its name."""
    if call.parsed_arguments is None or call.function_name != gold.function_name:
        return call
    arguments = _REWRITE[rule](call.parsed_arguments, gold.arguments)
    return replace(call, parsed_arguments=arguments)


def fits(
    call: ToolCall,
    gold: ScriptedCall,
    turn: AskedTurn,
    task: ScorableTask,
    policy: ScoringPolicy,
) -> bool:
    """Ask the kernel whether one call matches one gold call in full."""
    alone = replace(
        turn,
        scripted=replace(turn.scripted, calls=(gold,)),
        expected=(gold,),
        tool_calls=(call,),
    )
    return judge(alone, task, policy).calls[0].arguments_matched


def largest_matching(fit: Sequence[Sequence[bool]]) -> list[int | None]:
    """Return for each row the column it is matched with, as many rows as can be.

    A row that fits the column of its own number is matched with it first.
    """
    pairs: list[int | None] = [None] * len(fit)
    taken: dict[int, int] = {}
    for row, columns in enumerate(fit):
        if row < len(columns) and columns[row]:
            pairs[row] = row
            taken[row] = row

    def place(row: int, seen: set[int]) -> bool:
        for column, fitting in enumerate(fit[row]):
            if not fitting or column in seen:
                continue
            seen.add(column)
            if column not in taken or place(taken[column], seen):
                pairs[row] = column
                taken[column] = row
                return True
        return False

    for row in range(len(fit)):
        if pairs[row] is None:
            place(row, set())
    return pairs
