"""Slot values of a task: from the row's bindings, or recovered from a foreign row.

Rows of other publishers hold no bindings. Their rule is followed exactly
(`spec/executable-evaluator.md` 3.8): (a) the typed candidates of each slot, (b) the
opening turn rendered over their product, (c) values that gold calls commit, (d) a
sole declared value. What stays open is named, so that an assertion that reads it is
no verdict on the candidate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from harness.benchmark.slots import Candidate
from harness.benchmark.template_model import PLACEHOLDER, Template, placeholders_in
from harness.benchmark.wording import fill_text
from harness.canonical import Json, json_equal
from harness.conversation.script import ConversationScript

MAX_COMBINATIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TaskSlots:
    """Slot values at the start, after each correction, and what is not known."""

    initial: dict[str, Json]
    updates: list[dict[str, Json]]
    """`entry_index`, `values`, `aliases` of each correction in order."""
    unresolved_initial: list[str]
    unresolved_updates: list[dict[str, Json]]
    """`update_index`, `entry_index`, `slots` of corrections with unknown values."""

    def final(self) -> tuple[dict[str, Json], list[str]]:
        """Return the values at the end and the names that are not known."""
        values = dict(self.initial)
        unresolved = dict.fromkeys(self.unresolved_initial)
        gaps = {gap["update_index"]: gap["slots"] for gap in self.unresolved_updates}
        for index, update in enumerate(self.updates):
            for name, value in (update["values"] | update["aliases"]).items():
                values[name] = value
                unresolved.pop(name, None)
            for name in gaps.get(index, ()):
                values.pop(name, None)
                unresolved[name] = None
        return values, list(unresolved)


def bound_slots(bindings: dict[str, Json]) -> TaskSlots:
    """Return the slots of a row that carries its bindings."""
    return TaskSlots(
        dict(bindings.get("slots", {})), list(bindings.get("slot_updates", ())), [], []
    )


def recovered_slots(
    template: Template, row: dict[str, Json], script: ConversationScript
) -> TaskSlots:
    """Return the slots of a row without bindings, by the contract's rule."""
    rendered: dict[str, Json] = {}
    if row["metadata"].get("surface_source") == "template":
        rendered = _rendered(template, row, script)
    initial: dict[str, Json] = {}
    unresolved: list[str] = []
    corrected_at = {
        update.slot: turn.turn_index
        for turn in reversed(template.turns)
        if turn.answer is not None
        for update in turn.answer.updates
    }
    for name, slot in template.slots.items():
        stop = corrected_at.get(name, len(template.turns))
        committed = _committed(template, script, name, range(stop + 1))
        value = rendered.get(name, _NOTHING)
        if value is _NOTHING:
            value = _sole(committed, slot.candidates)
        if value is _NOTHING:
            unresolved.append(name)
        else:
            initial[name] = value
    updates, gaps = _updates(template, script)
    return TaskSlots(initial, updates, unresolved, gaps)


_NOTHING: Final = object()


def _rendered(
    template: Template, row: dict[str, Json], script: ConversationScript
) -> dict[str, Json]:
    """Render the opening over all candidates; keep what every match agrees on."""
    language = row["metadata"].get("language", "")
    wordings = template.opening.get(language, ())
    names = sorted(
        {n for text in wordings for n in placeholders_in(text)} & template.slots.keys()
    )
    axes = [template.slots[name].candidates for name in names]
    if not names or math.prod(map(len, axes)) > MAX_COMBINATIONS:
        return {}
    said = script.user_turns[0]
    matches: list[dict[str, Json]] = []
    for combination in itertools.product(*axes):
        values = {n: c.value for n, c in zip(names, combination, strict=True)}
        if any(fill_text(text, values) == said for text in wordings):
            matches.append(values)
    return {
        name: matches[0][name]
        for name in names
        if matches and all(json_equal(m[name], matches[0][name]) for m in matches)
    }


def _committed(
    template: Template, script: ConversationScript, name: str, turns: Iterable[int]
) -> list[Json]:
    """Return what gold calls of the turns state for a slot."""
    values: list[Json] = []
    for index in turns:
        if index >= len(template.turns) or index >= len(script.turns):
            break
        pairs = zip(
            template.turns[index].milestones, script.turns[index].calls, strict=False
        )
        for milestone, call in pairs:
            declared = milestone.arguments
            if name in call.arguments and name not in declared:
                values.append(call.arguments[name])
            values += _stated(declared, call.arguments, name)
    return values


def _stated(declared: Json, actual: Json, name: str) -> Iterator[Json]:
    if isinstance(declared, str):
        whole = PLACEHOLDER.fullmatch(declared)
        if whole is not None and whole[1] == name:
            yield actual
    elif isinstance(declared, dict) and isinstance(actual, dict):
        for key in declared.keys() & actual.keys():
            yield from _stated(declared[key], actual[key], name)
    elif isinstance(declared, list) and isinstance(actual, list):
        for pair in zip(declared, actual, strict=False):
            yield from _stated(*pair, name)


def _sole(committed: list[Json], candidates: tuple[Candidate, ...]) -> Json:
    """Return the one value that is committed, or declared; _NOTHING otherwise."""
    typed = [
        value
        for value in committed
        if any(json_equal(value, candidate.value) for candidate in candidates)
    ]
    if committed:
        agreed = len(typed) == len(committed) and all(
            json_equal(value, typed[0]) for value in typed
        )
        return typed[0] if agreed else _NOTHING
    return candidates[0].value if len(candidates) == 1 else _NOTHING


def _updates(
    template: Template, script: ConversationScript
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    updates: list[dict[str, Json]] = []
    gaps: list[dict[str, Json]] = []
    correcting = [
        (turn.turn_index, turn.answer)
        for turn in template.turns
        if turn.answer is not None and turn.answer.updates
    ]
    for number, (turn_index, answer) in enumerate(correcting):
        values: dict[str, Json] = {}
        aliases: dict[str, Json] = {}
        unknown: list[str] = []
        for update in answer.updates:
            later = [
                index
                for index, other in correcting[number + 1 :]
                if any(u.slot == update.slot for u in other.updates)
            ]
            until = later[0] + 1 if later else len(template.turns)
            turns = range(turn_index + 1, until)
            names = [update.slot, *([update.alias] if update.alias else [])]
            committed = [
                value for n in names for value in _committed(template, script, n, turns)
            ]
            value = _sole(committed, update.candidates)
            if value is _NOTHING:
                unknown += names
                continue
            values[update.slot] = value
            if update.alias is not None:
                aliases[update.alias] = value
        entry = answer.entry_index
        updates.append({"entry_index": entry, "values": values, "aliases": aliases})
        if unknown:
            gaps.append(
                {"update_index": number, "entry_index": entry, "slots": unknown}
            )
    return updates, gaps
