"""Reads the templates of a pack and reports every problem with its line."""

from __future__ import annotations

from typing import Final, get_args

from harness.benchmark.fixtures import Fixtures
from harness.benchmark.manifest import MILESTONE_TYPES, read_wording
from harness.benchmark.pack_tools import PackTools
from harness.benchmark.problems import PackFile, shown
from harness.benchmark.slots import (
    Candidate,
    Condition,
    SlotError,
    SlotSource,
    parse_filter,
    parse_source,
    source_values,
)
from harness.benchmark.template_model import (
    Milestone,
    SimulatorTurn,
    Slot,
    SlotUpdate,
    Template,
    Texts,
    turn_shapes,
)
from harness.canonical import Json
from harness.conversation.script import CallOrder
from harness.conversation.task import TurnPolicy
from harness.strict_yaml import YamlPath

_REQUIRED: Final = {
    "template_id",
    "turn_policy",
    "user_turn_templates",
    "assistant_milestones",
    "success_assertions",
}
_OPTIONAL: Final = {
    "intent",
    "category",
    "difficulty",
    "mutates",
    "call_order",
    "call_order_prefix",
    "required_tools",
    "tools_present",
    "slots",
    "user_simulator_turns",
    "assistant_turn_templates",
    "paraphrase",
    "edge_signatures",
}
_ORDERS: Final = ("strict", "any", "prefix")
_UNREADABLE: Final = (SlotSource("literal", ()), (), ())
_UNSAFE: Final = frozenset('/\\:*?"<>|')


def read_templates(
    file: PackFile, fixtures: Fixtures, tools: PackTools
) -> tuple[Template, ...]:
    """Read every template that can be read."""
    if not isinstance(file.value, list) or not file.value:
        file.problem((), "not a list of templates", actual=shown(file.value))
        return ()
    templates = []
    seen: set[str] = set()
    for position, raw in enumerate(file.value):
        template = _Reader(file, position, raw, fixtures, tools).template()
        if template is None:
            continue
        if template.template_id in seen:
            file.problem(
                (position, "template_id"), f"template {template.template_id!r} repeats"
            )
        seen.add(template.template_id)
        templates.append(template)
    return tuple(templates)


def safe_token(text: str) -> bool:
    """Tell whether a text may be a task id (spec 2.7)."""
    return (
        1 <= len(text) <= 200
        and text not in (".", "..")
        and all(c.isprintable() and not c.isspace() and c not in _UNSAFE for c in text)
    )


class _Reader:
    """Reads one template."""

    def __init__(
        self,
        file: PackFile,
        position: int,
        raw: Json,
        fixtures: Fixtures,
        tools: PackTools,
    ) -> None:
        self.file = file
        self.raw = raw
        self.position = position
        self.path: YamlPath = (position,)
        self.fixtures = fixtures
        self.tools = tools.by_name

    def template(self) -> Template | None:
        file, raw, path = self.file, self.raw, self.path
        if not file.closed(raw, path, _REQUIRED, _OPTIONAL):
            return None
        template_id = file.text(raw, "template_id", path, "unnamed")
        if not safe_token(template_id):
            file.problem((*path, "template_id"), f"{template_id!r} is no safe token")
        policy = self.policy()
        slots = self.slots()
        milestones = self.milestones()
        turns = self.simulator_turns(slots)
        if policy is None or not milestones:
            return None
        order, prefix = self.call_order()
        return Template(
            position=self.position,
            template_id=template_id,
            intent=file.text(raw, "intent", path, template_id),
            category=file.text(raw, "category", path, template_id),
            difficulty=file.text(raw, "difficulty", path) or None,
            turn_policy=policy,
            mutates=file.flag(raw, "mutates", path) if "mutates" in raw else None,
            call_order=order,
            call_order_prefix=prefix,
            tools_present=self.tools_present(),
            slots=slots,
            opening=self.texts(raw["user_turn_templates"], "user_turn_templates"),
            milestones=milestones,
            simulator_turns=turns,
            turns=turn_shapes(milestones, self.answers(milestones, turns)),
            wording=read_wording(
                file,
                raw.get("assistant_turn_templates", {}),
                (*path, "assistant_turn_templates"),
            ),
            success_assertions=self.assertions(),
            raw=raw,
        )

    def policy(self) -> TurnPolicy | None:
        policy = self.raw["turn_policy"]
        for known in get_args(TurnPolicy):
            if policy == known:
                return known  # type: ignore[no-any-return]
        self.file.problem(
            (*self.path, "turn_policy"),
            "unknown turn policy",
            expected=f"one of {list(get_args(TurnPolicy))}",
            actual=shown(policy),
        )
        return None

    def assertions(self) -> tuple[str, ...]:
        names = self.file.texts(self.raw, "success_assertions", self.path)
        if not names:
            self.file.problem(
                (*self.path, "success_assertions"), "a template needs an assertion"
            )
        return names

    def tools_present(self) -> tuple[str, ...] | None:
        if "tools_present" not in self.raw:
            return None
        names = self.file.texts(self.raw, "tools_present", self.path)
        for name in names:
            if name not in self.tools:
                self.file.problem(
                    (*self.path, "tools_present"), f"the pack has no tool {name!r}"
                )
        return names

    def call_order(self) -> tuple[CallOrder, int | None]:
        order = self.raw.get("call_order", "strict")
        prefix = self.raw.get("call_order_prefix")
        if order not in _ORDERS:
            self.file.problem(
                (*self.path, "call_order"),
                "unknown call order",
                expected=f"one of {list(_ORDERS)}",
                actual=shown(order),
            )
            return "strict", None
        if order != "prefix" and prefix is not None:
            self.file.problem(
                (*self.path, "call_order_prefix"),
                "call_order_prefix goes only with call_order: prefix",
            )
            return order, None
        if order == "prefix" and (type(prefix) is not int or prefix < 1):
            self.file.problem(
                (*self.path, "call_order_prefix"),
                "call_order: prefix needs call_order_prefix",
                expected="an integer above 0",
                actual=shown(prefix),
            )
            return order, 1
        return order, prefix

    def texts(self, value: Json, key: str, path: YamlPath | None = None) -> Texts:
        at = (*(self.path if path is None else path), key)
        texts: Texts = {}
        if not isinstance(value, dict):
            self.file.problem(at, "not an object of languages", actual=shown(value))
            return texts
        for language, found in value.items():
            wordings = found if isinstance(found, list) else [found]
            if wordings and all(isinstance(w, str) and w.strip() for w in wordings):
                texts[language] = tuple(wordings)
            else:
                self.file.problem((*at, language), "no text", actual=shown(found))
        return texts

    def slots(self) -> dict[str, Slot]:
        found = self.raw.get("slots", {})
        path = (*self.path, "slots")
        if not isinstance(found, dict):
            self.file.problem(path, "not an object of slots", actual=shown(found))
            return {}
        slots = {}
        for name, value in found.items():
            at = (*path, name)
            whole = self.file.closed(
                value, at, {"source", "visible_in_first_turn"}, {"filter", "label"}
            )
            # A faulty slot is told once; what names it finds a slot without values.
            source, conditions, candidates = (
                self.source(value, at) if whole else None
            ) or _UNREADABLE
            label = value.get("label", {}) if whole else {}
            slots[name] = Slot(
                name,
                source,
                conditions,
                not whole or self.file.flag(value, "visible_in_first_turn", at),
                {k: t[0] for k, t in self.texts(label, "label", at).items()},
                candidates,
            )
        return slots

    def source(
        self, value: dict[str, Json], path: YamlPath
    ) -> tuple[SlotSource, tuple[Condition, ...], tuple[Candidate, ...]] | None:
        text = self.file.text(value, "source", path)
        if not text:
            return None
        condition = self.file.text(value, "filter", path)
        try:
            source = parse_source(text)
            conditions = parse_filter(condition) if condition else ()
            candidates = source_values(source, conditions, self.fixtures, self.tools)
        except SlotError as error:
            self.file.problem((*path, "source"), str(error))
            return None
        return source, conditions, candidates

    def milestones(self) -> tuple[Milestone, ...]:
        found = self.raw["assistant_milestones"]
        path = (*self.path, "assistant_milestones")
        if not isinstance(found, list) or not found:
            self.file.problem(path, "not a list of milestones", actual=shown(found))
            return ()
        milestones = [
            self.milestone(index, value, (*path, index))
            for index, value in enumerate(found)
        ]
        ids = [m.id for m in milestones if m is not None and m.id is not None]
        for name in sorted({n for n in ids if ids.count(n) > 1}):
            self.file.problem(path, f"milestone id {name!r} repeats")
        if None in milestones:
            return ()
        return tuple(m for m in milestones if m is not None)

    def milestone(self, index: int, value: Json, path: YamlPath) -> Milestone | None:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind not in MILESTONE_TYPES:
            self.file.problem(
                path,
                "unknown milestone type",
                expected=f"one of {list(MILESTONE_TYPES)}",
                actual=shown(kind),
            )
            return None
        required, optional = {"type"}, {"id"}
        if kind == "tool_call":
            required, optional = {"type", "tool"}, {"id", "args", "call_group"}
        elif kind == "ask_for_slot":
            optional = {"id", "slot"}
        if not self.file.closed(value, path, required, optional):
            return None
        arguments = value.get("args", {})
        if not isinstance(arguments, dict):
            self.file.problem((*path, "args"), "not an object", actual=shown(arguments))
            return None
        group = value.get("call_group")
        if isinstance(group, bool | float | dict | list):
            self.file.problem((*path, "call_group"), "not an integer or a text")
            group = None
        return Milestone(
            index=index,
            type=kind,
            id=self.file.text(value, "id", path) or None,
            tool=self.file.text(value, "tool", path),
            arguments=arguments,
            call_group=group,
            slot=self.file.text(value, "slot", path) or None,
        )

    def simulator_turns(self, slots: dict[str, Slot]) -> tuple[SimulatorTurn, ...]:
        found = self.raw.get("user_simulator_turns", [])
        path = (*self.path, "user_simulator_turns")
        if not isinstance(found, list):
            self.file.problem(path, "not a list of user turns", actual=shown(found))
            return ()
        turns = []
        for index, value in enumerate(found):
            at = (*path, index)
            if not self.file.closed(
                value, at, {"after", "content_template"}, {"slot_updates"}
            ):
                continue
            turns.append(
                SimulatorTurn(
                    index,
                    self.file.text(value, "after", at),
                    self.texts(value["content_template"], "content_template", at),
                    self.updates(value.get("slot_updates", {}), at, slots),
                )
            )
        return tuple(turns)

    def updates(
        self, found: Json, path: YamlPath, slots: dict[str, Slot]
    ) -> tuple[SlotUpdate, ...]:
        path = (*path, "slot_updates")
        if not isinstance(found, dict):
            self.file.problem(path, "not an object of slots", actual=shown(found))
            return ()
        updates = []
        for name, value in found.items():
            at = (*path, name)
            if not self.file.closed(value, at, {"source"}, {"bind_as", "filter"}):
                continue
            parsed = self.source(value, at)
            if parsed is None:
                continue
            slot = slots.get(name)
            if slot is None:
                self.file.problem(at, f"the template has no slot {name!r}")
            elif slot.candidates and not slot.source.same_kind(parsed[0]):
                self.file.problem(
                    (*at, "source"),
                    "a correction draws from the same kind of source as its slot",
                )
            alias = self.file.text(value, "bind_as", at) or None
            if alias in slots:
                self.file.problem((*at, "bind_as"), f"{alias!r} is a slot already")
            updates.append(SlotUpdate(name, parsed[0], alias, parsed[2]))
        return tuple(updates)

    def answers(
        self, milestones: tuple[Milestone, ...], turns: tuple[SimulatorTurn, ...]
    ) -> dict[int, SimulatorTurn]:
        """Place each user turn: after a milestone's id, else the next of its type."""
        placed: dict[int, SimulatorTurn] = {}
        for turn in turns:
            path = (*self.path, "user_simulator_turns", turn.entry_index, "after")
            at = [m.index for m in milestones if m.id == turn.after] or [
                m.index
                for m in milestones
                if m.type == turn.after and m.index not in placed
            ]
            if not at:
                self.file.problem(path, f"no milestone {turn.after!r} to answer")
            elif at[0] in placed:
                self.file.problem(path, f"{turn.after!r} is answered twice")
            else:
                placed[at[0]] = turn
        return placed
