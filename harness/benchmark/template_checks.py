"""What must hold between a template and the rest of its pack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from harness.benchmark.assertion_specs import AssertionCatalog
from harness.benchmark.manifest import PackManifest
from harness.benchmark.pack_tools import PackTools
from harness.benchmark.problems import PackFile
from harness.benchmark.template_model import (
    SLOT_LABEL,
    Milestone,
    Template,
    Texts,
    placeholders_in,
    references_in,
)
from harness.benchmark.turn_policies import confirmed_turns, policy_findings
from harness.benchmark.wording import has_wording, wording_of
from harness.canonical import Json
from harness.strict_yaml import YamlPath

_WORD: Final = re.compile(r"\w+")


def check_template(
    file: PackFile,
    template: Template,
    manifest: PackManifest,
    tools: PackTools,
    assertions: AssertionCatalog,
) -> None:
    """Report everything that is wrong with a template as problems of its file."""
    checks = _TemplateChecks(manifest, tools, assertions)
    for path, finding in checks.findings(template):
        file.problem((template.position, *path), finding)


class _TemplateChecks:
    """The checks of one template; each yields paths and findings."""

    def __init__(
        self,
        manifest: PackManifest,
        tools: PackTools,
        assertions: AssertionCatalog,
    ) -> None:
        self.manifest = manifest
        self.tools = tools
        self.assertions = assertions

    def findings(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        for finding in policy_findings(template):
            yield ("turn_policy",), finding
        _, unearned = confirmed_turns(
            template, self.tools.by_name, self.manifest.confirmation
        )
        for index in unearned:
            yield (
                _at(template.turns[index].milestones[0]),
                ("a confirmed call that no answered ask_confirm covers"),
            )
        yield from self.calls(template)
        yield from self.groups(template)
        yield from self.order(template)
        yield from self.texts(template)
        yield from self.named_assertions(template)
        if template.turns[-1].answer is not None:
            yield (
                ("user_simulator_turns",),
                ("a user turn after the last milestone releases nothing"),
            )

    def calls(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        groups = {
            m.index: turn.call_group for turn in template.turns for m in turn.milestones
        }
        producers = {m.id: groups[m.index] for m in template.calls if m.id is not None}
        known = template.slots.keys() | template.aliases
        for call in template.calls:
            tool = self.tools.by_name.get(call.tool)
            if tool is None:
                yield _at(call, "tool"), f"the pack has no tool {call.tool!r}"
                continue
            if template.tools_present is not None and (
                call.tool not in template.tools_present
            ):
                yield _at(call, "tool"), f"{call.tool} is not in tools_present"
            for name in tool.required:
                if name not in call.arguments and name not in template.slots:
                    yield (
                        _at(call),
                        (
                            f"required argument {name!r} has neither a value in args "
                            "nor a slot of its name"
                        ),
                    )
            for name in set(placeholders_in(call.arguments)) - known:
                yield _at(call, "args"), f"placeholder {{{name}}} is no slot"
            if self.takes_confirmation_from_elsewhere(call):
                yield (
                    _at(call, "args"),
                    "a confirmation is stated as true or false, nothing else",
                )
            yield from _dependencies(call, groups, producers)

    def takes_confirmation_from_elsewhere(self, call: Milestone) -> bool:
        parameter = self.manifest.confirmation.parameter
        stated = call.arguments.get(parameter, False)
        return self.tools.by_name[call.tool].requires_confirmation and not isinstance(
            stated, bool
        )

    def groups(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        seen: set[Json] = set()
        for turn in template.turns:
            answers = [
                t
                for t in template.simulator_turns
                for m in turn.milestones
                if t.after == m.id
            ]
            if len(answers) > 1:
                yield _at(turn.milestones[0]), "two user turns answer one call group"
            declared = turn.milestones[0].call_group
            if declared is not None and declared in seen:
                yield (
                    _at(turn.milestones[0], "call_group"),
                    (f"call group {declared!r} is interleaved with another turn"),
                )
            seen.add(declared)

    def order(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        required = template.required_tools
        prefix = template.call_order_prefix
        if prefix is not None and prefix > len(required):
            yield (
                ("call_order_prefix",),
                (
                    f"call_order_prefix {prefix} is more than the "
                    f"{len(required)} tools that the template calls"
                ),
            )
        declared = template.raw.get("required_tools")
        if isinstance(declared, list) and set(map(str, declared)) != set(required):
            yield (
                ("required_tools",),
                (f"required_tools differs from the tools called: {list(required)}"),
            )

    def texts(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        slots, aliases = template.slots.keys(), template.aliases
        hidden = {s.name for s in template.slots.values() if not s.visible}
        path: YamlPath = ("user_turn_templates",)
        yield from self.languages(template.opening, path)
        for text in _all(template.opening):
            names = set(placeholders_in(text))
            for name in sorted(names - slots):
                yield path, f"placeholder {{{name}}} is no slot"
            for name in sorted(names & hidden):
                yield (
                    path,
                    f"slot {name!r} is hidden, yet the first user turn states it",
                )
            for name in sorted(slots - hidden - names):
                yield path, f"visible slot {name!r} is not in the first user turn"
            yield from self.tool_names(text, path)
        for turn in template.simulator_turns:
            path = ("user_simulator_turns", turn.entry_index, "content_template")
            yield from self.languages(turn.content, path)
            for text in _all(turn.content):
                for name in sorted(set(placeholders_in(text)) - slots - aliases):
                    yield path, f"placeholder {{{name}}} is no slot"
                yield from self.tool_names(text, path)
        yield from self.assistant_texts(template)

    def languages(self, texts: Texts, path: YamlPath) -> Iterator[tuple[YamlPath, str]]:
        for language in self.manifest.languages:
            if language not in texts:
                yield path, f"no wording for language {language!r}"
        for language in texts.keys() - set(self.manifest.languages):
            yield path, f"the manifest does not declare language {language!r}"

    def tool_names(self, text: str, path: YamlPath) -> Iterator[tuple[YamlPath, str]]:
        for name in tool_names_in(text, self.tools, self.manifest.tool_names_exempt):
            yield path, f"user text names the tool {name!r}"

    def assistant_texts(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        known = template.slots.keys() | template.aliases | {SLOT_LABEL}
        for milestone in template.milestones:
            if milestone.type == "tool_call":
                continue
            if milestone.slot is not None and milestone.slot not in template.slots:
                yield _at(milestone, "slot"), f"no slot {milestone.slot!r}"
            for language in self.manifest.languages:
                if not has_wording(self.manifest, template, milestone, language):
                    yield (
                        _at(milestone),
                        (
                            f"no wording for {milestone.type} in {language!r}; "
                            "add it to assistant_turn_templates"
                        ),
                    )
                    continue
                text = wording_of(self.manifest, template, milestone, language)
                for name in sorted(set(placeholders_in(text)) - known):
                    yield _at(milestone), f"placeholder {{{name}}} is no slot"

    def named_assertions(self, template: Template) -> Iterator[tuple[YamlPath, str]]:
        for name in template.success_assertions:
            if self.assertions.names is not None and name not in self.assertions.names:
                yield ("success_assertions",), f"assertions.py has no {name!r}"
            elif not self.assertions.capability(name).executable:
                yield (
                    ("success_assertions",),
                    (f"{name!r} declares executable: false and cannot judge a task"),
                )


def tool_names_in(
    text: str, tools: PackTools, exempt: frozenset[str]
) -> tuple[str, ...]:
    """Return the tool names that stand in a text as whole words."""
    words = set(_WORD.findall(text))
    return tuple(
        name
        for name in tools.by_name
        if name not in exempt
        and (name in words if _WORD.fullmatch(name) else name in text)
    )


def _at(milestone: Milestone, *keys: str) -> YamlPath:
    return ("assistant_milestones", milestone.index, *keys)


def _all(texts: Texts) -> Iterable[str]:
    return (text for wordings in texts.values() for text in wordings)


def _dependencies(
    call: Milestone,
    groups: dict[int, int | None],
    producers: dict[str, int | None],
) -> Iterator[tuple[YamlPath, str]]:
    for path, _ in _markers(call.arguments):
        if not any(path == found for found, _ in references_in(call.arguments)):
            yield _at(call, "args"), "from_result needs exactly the texts call and path"
    own = groups[call.index]
    for _, reference in references_in(call.arguments):
        producer = producers.get(reference.call)
        if reference.call not in producers:
            yield _at(call, "args"), f"no tool_call has the id {reference.call!r}"
        elif producer is None or own is None or producer >= own:
            yield (
                _at(call, "args"),
                (f"{reference.call!r} does not come in an earlier call group"),
            )
        if not all(reference.path):
            yield _at(call, "args"), "the path of from_result is empty"


def _markers(value: Json, path: YamlPath = ()) -> Iterator[tuple[YamlPath, Json]]:
    if isinstance(value, dict):
        if "from_result" in value:
            yield path, value
            return
        for key, item in value.items():
            yield from _markers(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _markers(item, (*path, index))
