"""A published row as an executable task: what only the pack can add to it.

Dependencies, confirmed turns and tool policies come from the pack's templates and
tools; the `task` object of assertions joins template, row and slot values
(`spec/executable-evaluator.md` 3.8). A row that does not fit its pack is refused.
"""

from __future__ import annotations

from typing import Final, Literal

from harness.benchmark.pack import Pack
from harness.benchmark.rows import SLOT_BINDINGS, Row
from harness.benchmark.slot_recovery import bound_slots, recovered_slots
from harness.benchmark.template_model import Template, references_in
from harness.benchmark.turn_policies import confirmed_turns
from harness.canonical import Json, json_equal, type_tag
from harness.conversation.script import ConversationScript, ScriptedCall
from harness.conversation.task import (
    AssertionSpec,
    Dependency,
    ExecutablePart,
    ToolPolicy,
)
from harness.errors import ConversationError

ORACLE_CLOCK: Final = "2026-01-01T09:00:00+00:00"
"""What every task's clock says in our publications."""
ASSERTION_TASK_VERSION: Final = "1.0"
_ROW_FIELDS: Final = (
    "task_id",
    "template_id",
    "variant_index",
    "seed",
    "fixture_refs",
    "intent",
    "category",
    "difficulty",
    "required_tools",
    "tools_present",
    "turn_policy",
    "is_multi_turn",
    "num_tool_calls",
    "call_order",
    "call_order_prefix",
    "system_prompt_id",
    "tier",
    "gold_eligible",
    "pack_id",
    "pack_version",
    "src",
    "metadata",
    "success_assertions",
    "tools",
)
ValueType = Literal["null", "bool", "integer", "number", "string"]
_VALUE_TYPES: Final[dict[str, ValueType]] = {
    "null": "null",
    "bool": "bool",
    "int": "integer",
    "float": "number",
    "str": "string",
}


def project_task(
    pack: Pack,
    row: Row,
    script: ConversationScript,
    oracle_identity: str,
    *,
    oracle_clock: str = ORACLE_CLOCK,
) -> ExecutablePart:
    """Return what executable mode adds to a row's script.

    `oracle_clock` is the run manifest's. Raises ConversationError
    (`eval_executable_projection_invalid`) where row and pack disagree.
    """
    template = _template(pack, row, script)
    earned, _ = confirmed_turns(
        template, pack.tools.by_name, pack.manifest.confirmation
    )
    return ExecutablePart(
        oracle_verification_identity=oracle_identity,
        oracle_clock=oracle_clock,
        seed=row["seed"],
        fixture_refs=tuple(row["fixture_refs"]),
        assertions=_assertions(pack, row),
        confirmed_call_turns=earned,
        dependencies=_dependencies(template, row, script),
        tool_policies=_tool_policies(pack, row),
        assertion_task=assertion_task(template, row, script),
    )


def assertion_task(
    template: Template, row: Row, script: ConversationScript
) -> dict[str, Json]:
    """Return the `task` object that the assertions of a row receive."""
    bindings = row.get(SLOT_BINDINGS)
    slots = (
        bound_slots(bindings)
        if bindings is not None
        else recovered_slots(template, row, script)
    )
    final, unresolved = slots.final()
    return {
        **template.raw,
        **{name: row[name] for name in _ROW_FIELDS},
        "assertion_task_schema_version": ASSERTION_TASK_VERSION,
        "expected_tool_calls": _expected_calls(row, script),
        "slots": final,
        "slots_initial": slots.initial,
        "slot_updates": slots.updates,
        "unresolved_slots": unresolved,
        "unresolved_slots_initial": slots.unresolved_initial,
        "unresolved_slot_updates": slots.unresolved_updates,
    }


def _expected_calls(row: Row, script: ConversationScript) -> list[Json]:
    return [
        {**expected, "arguments": call.arguments}
        for expected, call in zip(
            row["expected_tool_calls"], script.gold_calls, strict=True
        )
    ]


def _refusal(row: Row, problem: str, expected: str, actual: str) -> ConversationError:
    return ConversationError(
        "eval_executable_projection_invalid",
        problem,
        where=f"task {row['task_id']}",
        expected=expected,
        actual=actual,
        recovery="evaluate with the pack that the benchmark was published from",
    )


def _template(pack: Pack, row: Row, script: ConversationScript) -> Template:
    stated = (row["pack_id"], row["pack_version"])
    if stated != (pack.pack_id, pack.version):
        raise _refusal(
            row,
            "the row belongs to another pack",
            f"{pack.pack_id} {pack.version}",
            " ".join(stated),
        )
    template = pack.template(row["template_id"])
    if template is None:
        raise _refusal(
            row, "the pack has no such template", "a template", row["template_id"]
        )
    planned = [[m.tool for m in t.milestones if m.tool] for t in template.turns]
    scripted = [[c.function_name for c in t.calls] for t in script.turns]
    if planned != scripted or template.turn_policy != row["turn_policy"]:
        raise _refusal(
            row,
            "the row's turns are not its template's",
            f"{template.turn_policy} {planned}",
            f"{row['turn_policy']} {scripted}",
        )
    return template


def _assertions(pack: Pack, row: Row) -> tuple[AssertionSpec, ...]:
    specs = []
    for index, name in enumerate(row["success_assertions"]):
        names = pack.assertion_specs.names
        capability = pack.assertion_specs.capability(name)
        if (names is not None and name not in names) or not capability.executable:
            raise _refusal(
                row,
                "an assertion that cannot judge an executable task",
                "an assertion of the pack without executable: false",
                name,
            )
        specs.append(AssertionSpec(index, name, capability.category))
    return tuple(specs)


def _tool_policies(pack: Pack, row: Row) -> tuple[ToolPolicy, ...]:
    policies = []
    for exposed in row["tools"]:
        tool = pack.tools.by_name.get(exposed["function"]["name"])
        if tool is None or not json_equal(tool.model_tool, exposed):
            raise _refusal(
                row,
                "an exposed tool is not the pack's",
                "the pack's own definition",
                exposed["function"]["name"],
            )
        parameter = pack.manifest.confirmation.parameter
        policies.append(
            ToolPolicy(
                tool.name,
                tool.mutates,
                tool.requires_confirmation,
                parameter if tool.requires_confirmation else None,
            )
        )
    return tuple(policies)


def _dependencies(
    template: Template, row: Row, script: ConversationScript
) -> tuple[Dependency, ...]:
    calls = script.gold_calls
    turn_of = {call.call_index: turn for turn in script.turns for call in turn.calls}
    producers = {m.id: index for index, m in enumerate(template.calls)}
    dependencies: list[Dependency] = []
    for index, milestone in enumerate(template.calls):
        for path, reference in references_in(milestone.arguments):
            producer = producers[reference.call]
            dependencies.append(
                Dependency(
                    dependency_index=len(dependencies),
                    consumer_call_index=index,
                    consumer_turn_index=turn_of[index].turn_index,
                    consumer_position_in_turn=calls[index].position_in_group,
                    argument_path=tuple(str(part) for part in path),
                    producer_call_index=producer,
                    producer_turn_index=turn_of[producer].turn_index,
                    result_path=reference.path,
                    expected_value_type=_value_type(row, calls[index], path),
                )
            )
    return tuple(dependencies)


def _value_type(row: Row, call: ScriptedCall, path: tuple[str | int, ...]) -> ValueType:
    value: Json = call.arguments
    try:
        for part in path:
            value = value[part]
        return _VALUE_TYPES[type_tag(value)]
    except (KeyError, IndexError, TypeError):
        raise _refusal(
            row,
            "a dependent argument has no scalar gold value",
            "a null, bool, number or string",
            f"{call.function_name}: {'.'.join(map(str, path))}",
        ) from None
