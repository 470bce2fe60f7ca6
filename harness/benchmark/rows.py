"""One published row as plain JSON, and how a gold run becomes one.

The 31 columns are those of `spec/executable-evaluator.md` 2.2; `slot_bindings` is
ours and may be None. Rows hold decoded JSON except where the contract says text:
call arguments, tool results, gold arguments and fixture references.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from harness.benchmark.pack import Pack
from harness.benchmark.templates import PlannedTask
from harness.benchmark.wording import DEFAULT_SYSTEM_PROMPT, DEFAULT_SYSTEM_PROMPT_ID
from harness.canonical import Json, canonical_json, content_hash

Row = dict[str, Any]

COLUMNS: Final = (
    "task_id",
    "template_id",
    "variant_index",
    "messages",
    "tools",
    "expected_tool_calls",
    "success_assertions",
    "fixture_refs",
    "intent",
    "category",
    "difficulty",
    "required_tools",
    "required_tools_fingerprint",
    "tools_present",
    "turn_policy",
    "is_multi_turn",
    "num_tool_calls",
    "call_order",
    "call_order_prefix",
    "system_prompt_id",
    "tier",
    "gold_eligible",
    "validated_by",
    "pack_id",
    "pack_version",
    "seed",
    "paraphrase_model",
    "paraphrase_model_canonical",
    "held_out_hit",
    "src",
    "metadata",
)
"""The contract's columns in their order."""
SLOT_BINDINGS: Final = "slot_bindings"
TIER_GOLD: Final = "gold"
TIER_SILVER: Final = "silver"
"""Published, but the pack or the row did not pass everything."""


@dataclass(frozen=True, slots=True)
class GoldCall:
    """One gold call as it ran."""

    turn_index: int
    call_group: int
    position_in_group: int
    name: str
    arguments: dict[str, Json]
    result: dict[str, Json]
    state_before: str
    state_after: str


def system_prompt(pack: Pack) -> tuple[str, str]:
    """Return the system prompt of the pack and its id."""
    prompt = pack.manifest.system_prompt
    if prompt is None:
        return DEFAULT_SYSTEM_PROMPT, DEFAULT_SYSTEM_PROMPT_ID
    return prompt, f"{pack.pack_id}-{content_hash(prompt)[7:19]}"


def build_row(
    pack: Pack,
    planned: PlannedTask,
    calls: tuple[GoldCall, ...],
    *,
    tier: str = TIER_GOLD,
    gold_eligible: bool = True,
    validated_by: tuple[str, ...] = ("schema", "replay", "assertions"),
) -> Row:
    """Return the row of a task whose gold calls ran."""
    template = planned.template
    prompt, prompt_id = system_prompt(pack)
    required = list(dict.fromkeys(call.name for call in calls))
    tools = pack.tools.model_tools(template.tools_present)
    user_turns = 1 + sum(turn.user_message is not None for turn in planned.turns)
    return {
        "task_id": planned.task_id,
        "template_id": template.template_id,
        "variant_index": planned.variant_index,
        "messages": _messages(prompt, planned, calls),
        "tools": tools,
        "expected_tool_calls": [_expected(call) for call in calls],
        "success_assertions": list(template.success_assertions),
        "fixture_refs": list(planned.fixture_refs),
        "intent": template.intent,
        "category": template.category,
        "difficulty": template.difficulty,
        "required_tools": required,
        "required_tools_fingerprint": canonical_json(sorted(required)),
        "tools_present": [tool["function"]["name"] for tool in tools],
        "turn_policy": template.turn_policy,
        "is_multi_turn": user_turns > 1,
        "num_tool_calls": len(calls),
        "call_order": template.call_order,
        "call_order_prefix": template.call_order_prefix,
        "system_prompt_id": prompt_id,
        "tier": tier,
        "gold_eligible": gold_eligible,
        "validated_by": list(validated_by),
        "pack_id": pack.pack_id,
        "pack_version": pack.version,
        "seed": planned.seed,
        "paraphrase_model": None,
        "paraphrase_model_canonical": None,
        "held_out_hit": None,
        "src": f"{pack.pack_id}:{template.template_id}",
        "metadata": {
            "language": planned.language,
            "expt_name": pack.pack_id,
            "base_task_id": planned.task_id,
            "surface_source": "template",
            "profile_hash": None,
        },
        SLOT_BINDINGS: planned.slot_bindings,
    }


def row_hash(row: Row) -> str:
    """Return the content hash of a row; absent slot bindings count as null."""
    return content_hash({SLOT_BINDINGS: None, **row})


def visible_steps(row: Row) -> list[tuple[str, str]]:
    """Return what a model sees before each gold step, and that step.

    Both are canonical text. Call ids and the words of assistant texts are left out,
    for a model brings its own.
    """
    ordered = row["call_order"] != "any"
    seen: list[Json] = [row["tools"]]
    steps: list[tuple[str, str]] = []
    for message in row["messages"]:
        if message["role"] != "assistant":
            seen.append([message["role"], message["content"]])
            continue
        step: list[Json] = ["text"]
        if message.get("tool_calls"):
            step = [call["function"] for call in message["tool_calls"]]
            step = step if ordered else sorted(step, key=canonical_json)
        steps.append((canonical_json(seen), canonical_json(step)))
        seen.append(step)
    return steps


def _messages(
    prompt: str, planned: PlannedTask, calls: tuple[GoldCall, ...]
) -> list[Json]:
    messages: list[Json] = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": planned.user_message},
    ]
    number = 0
    for turn in planned.turns:
        if turn.text is not None:
            messages.append({"role": "assistant", "content": turn.text})
        else:
            issued = calls[number : number + len(turn.calls)]
            ids = [f"call_{number + offset}" for offset in range(len(issued))]
            number += len(issued)
            messages.append(
                {
                    "role": "assistant",
                    "tool_calls": [
                        _tool_call(*pair) for pair in zip(ids, issued, strict=True)
                    ],
                }
            )
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": call_id,
                    "content": canonical_json(call.result),
                }
                for call_id, call in zip(ids, issued, strict=True)
            ]
        if turn.user_message is not None:
            messages.append({"role": "user", "content": turn.user_message})
    return messages


def _tool_call(call_id: str, call: GoldCall) -> Json:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": canonical_json(call.arguments)},
    }


def _expected(call: GoldCall) -> Json:
    return {
        "turn_index": call.turn_index,
        "call_group": call.call_group,
        "position_in_group": call.position_in_group,
        "function_name": call.name,
        "arguments": {
            name: canonical_json(call.arguments[name])
            for name in sorted(call.arguments)
        },
    }
