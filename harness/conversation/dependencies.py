"""Arguments that must come from an earlier live result.

A dependency is resolved before its turn is asked: the producer's execution is
looked up, its result is walked along the declared path, and the value takes the
gold value's place in the arguments that the candidate is compared with. Copying the
published value where the live one differs is therefore a mismatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.canonical import Json
from harness.conversation.script import ScriptedCall, ScriptedTurn
from harness.conversation.task import Dependency
from harness.evidence.episode import DependencyOutcome, DependencyStatus
from harness.json_schema import ToolCatalog

_MISSING = object()


def resolve(
    dependencies: Sequence[Dependency],
    turn: ScriptedTurn,
    results: Mapping[int, Sequence[Json]],
    catalog: ToolCatalog,
) -> tuple[DependencyOutcome, ...]:
    """Resolve every dependency whose consumer stands in `turn`.

    `results` maps a gold call index to the live results of the candidate calls that
    were paired with it.
    """
    own = [d for d in dependencies if d.consumer_turn_index == turn.turn_index]
    if not own:
        return ()
    outcomes = [_resolve_one(dependency, results) for dependency in own]
    expected = substitute(turn.calls, own, outcomes)
    return tuple(
        _checked(dependency, outcome, expected, catalog)
        for dependency, outcome in zip(own, outcomes, strict=True)
    )


def substitute(
    calls: tuple[ScriptedCall, ...],
    dependencies: Sequence[Dependency],
    outcomes: Sequence[DependencyOutcome],
) -> tuple[ScriptedCall, ...]:
    """Return the gold calls with each resolved value in its place."""
    if not outcomes:
        return calls
    by_index = {d.dependency_index: d for d in dependencies}
    arguments = {call.call_index: call.arguments for call in calls}
    for outcome in outcomes:
        if outcome.status != "resolved" or outcome.consumer_call_index not in arguments:
            continue
        path = by_index[outcome.dependency_index].argument_path
        arguments[outcome.consumer_call_index] = _placed(
            arguments[outcome.consumer_call_index], path, outcome.value
        )
    return tuple(replace(call, arguments=arguments[call.call_index]) for call in calls)


def _resolve_one(
    dependency: Dependency, results: Mapping[int, Sequence[Json]]
) -> DependencyOutcome:
    produced = results.get(dependency.producer_call_index, ())
    if not produced:
        return _outcome(dependency, "producer_missing")
    if len(produced) > 1:
        return _outcome(dependency, "producer_ambiguous")
    if not isinstance(produced[0], dict):
        return _outcome(dependency, "result_unavailable")
    value = _walk(produced[0], dependency.result_path)
    if value is _MISSING:
        return _outcome(dependency, "result_path_missing")
    if not _has_type(value, dependency.expected_value_type):
        return _outcome(dependency, "result_type_mismatch", value)
    return _outcome(dependency, "resolved", value)


def _checked(
    dependency: Dependency,
    outcome: DependencyOutcome,
    expected: tuple[ScriptedCall, ...],
    catalog: ToolCatalog,
) -> DependencyOutcome:
    """Turn a resolved value that the consumer's schema refuses into its status."""
    if outcome.status != "resolved":
        return outcome
    call = expected[dependency.consumer_position_in_turn]
    if catalog.failures(call.function_name, call.arguments):
        return _outcome(dependency, "consumer_schema_invalid", outcome.value)
    return outcome


def _outcome(
    dependency: Dependency, status: DependencyStatus, value: Json = None
) -> DependencyOutcome:
    return DependencyOutcome(
        dependency_index=dependency.dependency_index,
        consumer_call_index=dependency.consumer_call_index,
        consumer_turn_index=dependency.consumer_turn_index,
        producer_call_index=dependency.producer_call_index,
        status=status,
        value=value,
        reason_code=f"dependency.{status}",
        detail=f"{'.'.join(dependency.result_path)} of call "
        f"{dependency.producer_call_index}",
    )


def _walk(value: Json, path: Sequence[str]) -> Any:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _has_type(value: Json, name: str) -> bool:
    if name == "null":
        return value is None
    if isinstance(value, bool):
        return name == "bool"
    kinds: dict[str, type | tuple[type, ...]] = {
        "integer": int,
        "number": (int, float),
        "string": str,
    }
    return name in kinds and isinstance(value, kinds[name])


def _placed(container: Any, path: Sequence[str], value: Json) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(container, list):
        copy: Any = list(container)
        copy[int(step)] = _placed(copy[int(step)], rest, value)
        return copy
    return {**container, step: _placed(container[step], rest, value)}
