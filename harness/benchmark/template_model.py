"""`task_templates.yaml`: kinds of conversations, parsed and placed.

A template is a list of milestones (what the assistant does) and of simulator turns
(what the user answers). Milestones become assistant turns: consecutive `tool_call`s
of one group are one turn with parallel calls, everything else is its own turn
(`spec/executable-evaluator.md` 1.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from harness.benchmark.manifest import Wording
from harness.benchmark.slots import Candidate, Condition, SlotSource
from harness.canonical import Json
from harness.conversation.script import CallOrder
from harness.conversation.task import TurnPolicy
from harness.strict_yaml import YamlPath

MilestoneType = Literal[
    "tool_call", "ask_for_slot", "ask_confirm", "decline", "final_answer"
]
PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
SLOT_LABEL: Final = "slot_label"
"""Placeholder of an `ask_for_slot` text: the label of the slot that is asked for."""

Texts = dict[str, tuple[str, ...]]
"""Language to one wording or several, which take turns over the variants."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot and every value that it can take."""

    name: str
    source: SlotSource
    conditions: tuple[Condition, ...]
    visible: bool
    label: dict[str, str]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class ResultReference:
    """An argument value that is known only from an earlier live result."""

    call: str
    """Id of the producing milestone."""
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Milestone:
    """One thing that the assistant does."""

    index: int
    type: MilestoneType
    id: str | None
    tool: str = ""
    arguments: dict[str, Json] = field(default_factory=dict)
    """As declared: placeholders and `from_result` markers still in place."""
    call_group: Json = None
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class SlotUpdate:
    """A correction of one slot."""

    slot: str
    source: SlotSource
    alias: str | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class SimulatorTurn:
    """What the user says after a milestone."""

    entry_index: int
    after: str
    content: Texts
    updates: tuple[SlotUpdate, ...]


@dataclass(frozen=True, slots=True)
class TurnShape:
    """One assistant turn and the user's answer to it."""

    turn_index: int
    milestones: tuple[Milestone, ...]
    call_group: int | None
    """Renumbered from 0 in issue order; None for a text turn."""
    answer: SimulatorTurn | None

    @property
    def type(self) -> MilestoneType:
        """The type of the turn's milestones, which all agree."""
        return self.milestones[0].type


@dataclass(frozen=True, slots=True)
class Template:
    """One parsed template."""

    position: int
    template_id: str
    intent: str
    category: str
    difficulty: str | None
    turn_policy: TurnPolicy
    mutates: bool | None
    call_order: CallOrder
    call_order_prefix: int | None
    tools_present: tuple[str, ...] | None
    slots: dict[str, Slot]
    opening: Texts
    milestones: tuple[Milestone, ...]
    simulator_turns: tuple[SimulatorTurn, ...]
    turns: tuple[TurnShape, ...]
    wording: Wording
    success_assertions: tuple[str, ...]
    raw: dict[str, Json]
    """The template as it stands in the file."""

    @property
    def calls(self) -> tuple[Milestone, ...]:
        """All call milestones in issue order."""
        return tuple(m for m in self.milestones if m.type == "tool_call")

    @property
    def required_tools(self) -> tuple[str, ...]:
        """The gold tools in order of first appearance."""
        return tuple(dict.fromkeys(call.tool for call in self.calls))

    @property
    def updates(self) -> tuple[SlotUpdate, ...]:
        """All corrections in the order of the conversation."""
        answers = [turn.answer for turn in self.turns if turn.answer is not None]
        return tuple(update for answer in answers for update in answer.updates)

    @property
    def aliases(self) -> frozenset[str]:
        """The extra names that corrections bind."""
        return frozenset(u.alias for u in self.updates if u.alias is not None)


def result_reference(value: Json) -> ResultReference | None:
    """Return the dependency that a value stands for, or None for a plain value."""
    if not (isinstance(value, dict) and value.keys() == {"from_result"}):
        return None
    marker = value["from_result"]
    if not (isinstance(marker, dict) and marker.keys() == {"call", "path"}):
        return None
    call, path = marker["call"], marker["path"]
    if not (isinstance(call, str) and isinstance(path, str | int)):
        return None
    return ResultReference(call, tuple(str(path).split(".")))


def references_in(
    value: Json, path: YamlPath = ()
) -> Iterator[tuple[YamlPath, ResultReference]]:
    """Yield every dependency inside a value with its path, in document order."""
    reference = result_reference(value)
    if reference is not None:
        yield path, reference
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from references_in(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from references_in(item, (*path, index))


def placeholders_in(value: Json) -> Iterator[str]:
    """Yield the placeholder names inside a value, dependency markers apart."""
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif result_reference(value) is None:
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            for item in items:
                yield from placeholders_in(item)


def turn_shapes(
    milestones: tuple[Milestone, ...], answers: dict[int, SimulatorTurn]
) -> tuple[TurnShape, ...]:
    """Group milestones into assistant turns; `answers` is by milestone index."""
    batches: list[list[Milestone]] = []
    for milestone in milestones:
        previous = batches[-1][-1] if batches else None
        if (
            previous is not None
            and milestone.type == previous.type == "tool_call"
            and milestone.call_group is not None
            and milestone.call_group == previous.call_group
        ):
            batches[-1].append(milestone)
        else:
            batches.append([milestone])
    shapes: list[TurnShape] = []
    groups = 0
    for index, batch in enumerate(batches):
        group = None
        if batch[0].type == "tool_call":
            group, groups = groups, groups + 1
        answer = next((answers[m.index] for m in batch if m.index in answers), None)
        shapes.append(TurnShape(index, tuple(batch), group, answer))
    return tuple(shapes)
