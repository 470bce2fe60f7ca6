"""Slots to tasks: every variant of every template, in a fixed order.

Slots bind independently: a template's variants are the product of its slots' values
and of its corrections' values, less those where a correction changes nothing. Where
the product is larger than `MAX_VARIANTS`, a sample that only the seed decides is
taken. A task's id does not depend on the seed; its seed does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.benchmark.pack import Pack
from harness.benchmark.slots import Candidate
from harness.benchmark.template_checks import tool_names_in
from harness.benchmark.template_model import (
    SLOT_LABEL,
    Milestone,
    SlotUpdate,
    Template,
    Texts,
    TurnShape,
)
from harness.benchmark.wording import as_text, fill, fill_text, slot_label, wording_of
from harness.canonical import Json, canonical_bytes, json_equal
from harness.errors import PackError

MAX_VARIANTS: Final = 256
"""Most tasks that one template may become."""
_SEED_BITS: Final = 53
"""Task seeds stay exact in every JSON reader."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One gold call before it ran: `from_result` markers are still in place."""

    milestone_id: str | None
    name: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """One assistant turn: calls or text, and the user's answer."""

    turn_index: int
    call_group: int | None
    calls: tuple[PlannedCall, ...]
    text: str | None
    user_message: str | None


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task, complete but for what only the oracle knows."""

    task_id: str
    template: Template
    variant_index: int
    seed: int
    language: str
    user_message: str
    turns: tuple[PlannedTurn, ...]
    slot_bindings: dict[str, Json]
    """`slots` (at the start), `slot_updates`, `withheld`, `decoys`."""
    fixture_refs: tuple[str, ...]
    surface_problem: str
    """Why the words give something away, or empty."""


@dataclass(frozen=True, slots=True)
class _Variant:
    slots: dict[str, Candidate]
    updates: tuple[tuple[SlotUpdate, Candidate], ...]


def expand(
    pack: Pack,
    *,
    seed: int,
    language: str | None = None,
    max_variants: int = MAX_VARIANTS,
) -> list[PlannedTask]:
    """Return the tasks of every template, in template and variant order.

    A template with more than `max_variants` variants is sampled by the seed.
    Raises PackError (`pack_invalid`) for a language that the pack does not have.
    """
    language = language or pack.manifest.default_language
    if language not in pack.manifest.languages:
        raise PackError(
            "pack_invalid",
            f"the pack has no language {language!r}",
            where=f"pack {pack.pack_id}, manifest.yaml: languages",
            expected=f"one of {list(pack.manifest.languages)}",
            recovery="publish one of them; translated benchmarks are out of scope",
        )
    return [
        _Planner(pack, template, language, index, variant).task(seed)
        for template in pack.templates
        for index, variant in enumerate(_variants(template, seed, max_variants))
    ]


def combinations(template: Template) -> int:
    """Return the size of the template's product of slot and correction values."""
    return math.prod(map(len, _axes(template)))


def _axes(template: Template) -> list[tuple[Candidate, ...]]:
    axes = [slot.candidates for slot in template.slots.values()]
    return [*axes, *(update.candidates for update in template.updates)]


def _variants(template: Template, seed: int, most: int) -> Iterator[_Variant]:
    total = combinations(template)
    taken = 0
    for number in _numbers(template.template_id, total, seed, most):
        variant = _variant(template, number)
        if taken < most and _changes_something(variant):
            taken += 1
            yield variant


def _numbers(template_id: str, total: int, seed: int, most: int) -> Iterator[int]:
    if total <= most:
        yield from range(total)
        return
    # Some drawn variants may be skipped, so twice the need is drawn.
    chosen: dict[int, None] = {}
    draw = 0
    while len(chosen) < min(total, 2 * most):
        digest = hashlib.sha256(canonical_bytes([seed, template_id, draw])).digest()
        chosen[int.from_bytes(digest[:16], "big") % total] = None
        draw += 1
    yield from sorted(list(chosen)[: 2 * most])


def _variant(template: Template, number: int) -> _Variant:
    picked: list[Candidate] = []
    for axis in reversed(_axes(template)):
        number, position = divmod(number, len(axis))
        picked.append(axis[position])
    picked.reverse()
    names = list(template.slots)
    return _Variant(
        dict(zip(names, picked, strict=False)),
        tuple(zip(template.updates, picked[len(names) :], strict=True)),
    )


def _changes_something(variant: _Variant) -> bool:
    current = {name: found.value for name, found in variant.slots.items()}
    for update, candidate in variant.updates:
        if json_equal(current[update.slot], candidate.value):
            return False
        current[update.slot] = candidate.value
    return True


class _Planner:
    """Plans one task: walks the turns and keeps the current slot values."""

    def __init__(
        self,
        pack: Pack,
        template: Template,
        language: str,
        variant_index: int,
        variant: _Variant,
    ) -> None:
        self.pack = pack
        self.template = template
        self.language = language
        self.variant_index = variant_index
        self.values: dict[str, Json] = {
            name: found.value for name, found in variant.slots.items()
        }
        self.initial = dict(self.values)
        self.new_values = {
            id(update): candidate.value for update, candidate in variant.updates
        }
        self.updates: list[dict[str, Json]] = []
        self.decoys: dict[str, list[Json]] = {}
        chosen = [*variant.slots.values(), *(c for _, c in variant.updates)]
        self.references = tuple(sorted({r for c in chosen for r in c.references}))

    def task(self, seed: int) -> PlannedTask:
        opening = self.say(self.template.opening, self.values)
        turns = tuple(self.turn(shape) for shape in self.template.turns)
        bindings = {
            "slots": self.initial,
            "slot_updates": self.updates,
            "withheld": [s.name for s in self.template.slots.values() if not s.visible],
            "decoys": self.decoys,
        }
        identity = [
            self.pack.pack_id,
            self.pack.version,
            self.template.template_id,
            list(self.references),
            bindings,
            self.variant_index,
        ]
        digest = hashlib.sha256(canonical_bytes(identity)).hexdigest()
        return PlannedTask(
            task_id=f"{self.template.template_id}-{digest[:12]}",
            template=self.template,
            variant_index=self.variant_index,
            seed=_task_seed(seed, identity),
            language=self.language,
            user_message=opening,
            turns=turns,
            slot_bindings=bindings,
            fixture_refs=self.references,
            surface_problem=self.surface_problem(opening, turns),
        )

    def say(self, texts: Texts, values: dict[str, Json]) -> str:
        wordings = texts[self.language]
        return fill_text(wordings[self.variant_index % len(wordings)], values)

    def turn(self, shape: TurnShape) -> PlannedTurn:
        calls: tuple[PlannedCall, ...] = ()
        text = None
        if shape.type == "tool_call":
            calls = tuple(self.call(milestone) for milestone in shape.milestones)
        else:
            text = self.assistant_text(shape.milestones[0])
        return PlannedTurn(
            shape.turn_index, shape.call_group, calls, text, self.answer(shape)
        )

    def call(self, milestone: Milestone) -> PlannedCall:
        arguments = fill(milestone.arguments, self.values)
        for name in self.pack.tools.by_name[milestone.tool].required:
            if name not in arguments:
                arguments[name] = self.values[name]
        return PlannedCall(milestone.id, milestone.tool, arguments)

    def assistant_text(self, milestone: Milestone) -> str:
        text = wording_of(self.pack.manifest, self.template, milestone, self.language)
        label = slot_label(self.template, milestone, self.language)
        return fill_text(text, {SLOT_LABEL: label, **self.values})

    def answer(self, shape: TurnShape) -> str | None:
        """Return the user's words; a correction takes effect with them.

        A correction that binds an alias may still name the old value by its slot.
        """
        answer = shape.answer
        if answer is None:
            return None
        spoken = dict(self.values)
        fresh: dict[str, Json] = {}
        aliases: dict[str, Json] = {}
        for update in answer.updates:
            value = self.new_values[id(update)]
            self.decoys.setdefault(update.slot, []).append(self.values[update.slot])
            fresh[update.slot] = value
            if update.alias is None:
                spoken[update.slot] = value
            else:
                aliases[update.alias] = value
        self.values |= fresh | aliases
        if answer.updates:
            self.updates.append(
                {
                    "entry_index": answer.entry_index,
                    "values": fresh,
                    "aliases": aliases,
                }
            )
        return self.say(answer.content, spoken | aliases)

    def surface_problem(self, opening: str, turns: tuple[PlannedTurn, ...]) -> str:
        for slot in self.template.slots.values():
            if slot.visible and as_text(self.initial[slot.name]) not in opening:
                return f"visible slot {slot.name!r} is not in the first user turn"
        exempt = self.pack.manifest.tool_names_exempt
        for text in (opening, *(t.user_message for t in turns)):
            if text is not None and (
                names := tool_names_in(text, self.pack.tools, exempt)
            ):
                return f"user text names the tool {names[0]!r}"
        return self.superseded_value_in_use(turns)

    def superseded_value_in_use(self, turns: tuple[PlannedTurn, ...]) -> str:
        """Find a call after a correction that still uses the old value."""
        stale: dict[str, list[Json]] = {}
        updates = iter(self.updates)
        values = dict(self.initial)
        for turn, shape in zip(turns, self.template.turns, strict=True):
            for call in turn.calls:
                for name, old in stale.items():
                    stated = call.arguments.get(name)
                    if any(json_equal(stated, value) for value in old):
                        return f"a call uses the superseded value of {name!r}"
            if shape.answer is not None and shape.answer.updates:
                fresh = next(updates)["values"]
                for name, value in fresh.items():
                    old = [*stale.get(name, []), values[name]]
                    stale[name] = [v for v in old if not json_equal(v, value)]
                    values[name] = value
        return ""


def _task_seed(seed: int, identity: list[Json]) -> int:
    digest = hashlib.sha256(canonical_bytes([seed, *identity])).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)
