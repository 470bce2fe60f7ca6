"""One task as the driver and the scorer know it: script, rules and oracle facts.

A `TaskSpec` belongs to a benchmark and a pack, never to a candidate. The executable
part is projected from the pack when the run is authorized (spec 3.8); a trace-only
run has none. Everything that scoring needs is here, so a run folder that keeps its
task specs can be scored again without the benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from harness.conversation.script import ConversationScript
from harness.evidence.records import Record

TASK_SPEC_VERSION = "1.0"

TurnPolicy = Literal[
    "single_turn",
    "multi_tool",
    "missing_slot",
    "confirmation",
    "correction",
    "dependent_call",
    "negative_path",
    "clarify_only",
    "irrelevant",
]
AssertionCategory = Literal["state", "path", "result", "final_answer", "unclassified"]


@dataclass(frozen=True, slots=True)
class ToolPolicy(Record):
    """What a tool may do, by the pack's own declaration."""

    function_name: str
    mutates: bool
    requires_confirmation: bool
    confirmation_parameter: str | None


@dataclass(frozen=True, slots=True)
class Dependency(Record):
    """An argument that must come from an earlier live result."""

    dependency_index: int
    consumer_call_index: int
    consumer_turn_index: int
    consumer_position_in_turn: int
    argument_path: tuple[str, ...]
    """Keys and list indexes (as decimal text) from the arguments' root."""
    producer_call_index: int
    producer_turn_index: int
    result_path: tuple[str, ...]
    expected_value_type: Literal["null", "bool", "integer", "number", "string"]


@dataclass(frozen=True, slots=True)
class AssertionSpec(Record):
    """One success assertion and what it is declared to judge."""

    assertion_index: int
    name: str
    category: AssertionCategory


@dataclass(frozen=True, slots=True)
class ExecutablePart(Record):
    """What executable mode adds to a task (spec 3.8)."""

    oracle_verification_identity: str
    oracle_clock: str
    seed: int
    fixture_refs: tuple[str, ...]
    assertions: tuple[AssertionSpec, ...]
    confirmed_call_turns: tuple[int, ...]
    dependencies: tuple[Dependency, ...]
    tool_policies: tuple[ToolPolicy, ...]
    assertion_task: dict[str, Any]
    """The `task` object that assertions receive."""


@dataclass(frozen=True, slots=True)
class TaskSpec(Record):
    """One task of the plan."""

    schema_version: str
    script: ConversationScript
    template_id: str
    category: str | None
    difficulty: str | None
    turn_policy: TurnPolicy
    slot_bindings: dict[str, Any] | None
    """`slots`, `slot_updates`, `withheld`, `decoys`; None for foreign rows."""
    executable: ExecutablePart | None

    @property
    def task_id(self) -> str:
        """The id of the published row."""
        return self.script.task_id


@dataclass(frozen=True, slots=True)
class ScoringPolicy(Record):
    """The scoring section of a config, by meaning (spec 3.1)."""

    contract_hash: str
    argument_matching: Literal["schema_then_canonical", "canonical_only"]
    insert_declared_defaults: bool
    respect_call_order: bool
    respect_call_group: bool
    allow_llm_repair: bool
    task_success: Literal["all_applicable_gates", "assertions_only"]
    intermediate_text_matching: Literal["structural", "verbatim"]
    attribution: Literal["wire-1", "strict-002"]
