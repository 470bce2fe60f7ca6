"""Values for the controls that change an argument.

Both changes are chosen by fixed order, never by chance: the first argument, in code
point order, that can be changed is changed to the first value that fits. Arguments
without a declared default go first, and a parameter that stands for the user's
confirmation is never touched, for that is another control's mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from harness.candidates.control_task import ControlTask
from harness.canonical import Json, json_equal, type_tag

MAX_REFERENCES = 16
"""How many `$ref` steps are followed while looking for an `enum`."""


class ChangedArgument(NamedTuple):
    """All arguments of a call, and the top-level name of the one that is new."""

    arguments: dict[str, Json]
    name: str


def another_valid_argument(
    task: ControlTask, function_name: str, arguments: dict[str, Json]
) -> ChangedArgument | None:
    """Change one argument to another value that its schema allows."""
    root = task.parameters.get(function_name, {})
    for name in _changeable(task, function_name, arguments):
        schema = _property(root, root, name)
        for value in _others(arguments[name], schema, root):
            changed = {**arguments, name: value}
            if _is_same(value, arguments[name]):
                continue
            if not task.catalog.failures(function_name, changed):
                return ChangedArgument(changed, name)
    return None


def wrongly_typed_argument(
    task: ControlTask, function_name: str, arguments: dict[str, Json]
) -> ChangedArgument | None:
    """Change one argument to a value that its schema refuses for its type."""
    for name in _changeable(task, function_name, arguments):
        for value in _retyped(arguments[name]):
            changed = {**arguments, name: value}
            if task.catalog.failures(function_name, changed):
                return ChangedArgument(changed, name)
    return None


def _changeable(
    task: ControlTask, function_name: str, arguments: dict[str, Json]
) -> list[str]:
    schema = task.catalog.schema(function_name)
    defaulted = frozenset() if schema is None else schema.defaulted
    confirmation = task.confirmation.get(function_name)
    names = [name for name in arguments if name != confirmation]
    return sorted(names, key=lambda name: (name in defaulted, name))


def _is_same(value: Json, other: Json) -> bool:
    """Tell whether arithmetic on a huge number has changed nothing, or left JSON."""
    infinite = isinstance(value, float) and not math.isfinite(value)
    return infinite or json_equal(value, other)


def _others(value: Json, schema: Json, root: Json) -> Iterator[Json]:
    """Yield other values of the same type, the most natural first."""
    for member in _enum(schema, root):
        if type_tag(member) == type_tag(value) and not json_equal(member, value):
            yield member
    match type_tag(value):
        case "bool":
            yield not value
        case "int" | "float":
            yield from (value + 1, value - 1, value + 2, value * 2 + 1)
        case "str":
            yield from _other_texts(value)
        case "array":
            for index, item in enumerate(value):
                for other in _others(item, _items(schema, root), root):
                    yield [*value[:index], other, *value[index + 1 :]]
        case "object":
            for key in sorted(value):
                for other in _others(value[key], _property(schema, root, key), root):
                    yield {**value, key: other}


def _other_texts(text: str) -> Iterator[str]:
    """Yield texts of the same form: another digit or letter, then another length."""
    for position in reversed(range(len(text))):
        other = _next_character(text[position])
        if other is not None:
            yield f"{text[:position]}{other}{text[position + 1 :]}"
    yield f"{text}x"
    yield text[:-1] if text else "other"


def _next_character(character: str) -> str | None:
    for first, last in (("0", "9"), ("a", "z"), ("A", "Z")):
        if first <= character <= last:
            return first if character == last else chr(ord(character) + 1)
    return None


def _retyped(value: Json) -> Iterator[Json]:
    match type_tag(value):
        case "bool":
            yield "true" if value else "false"
        case "int" | "float":
            yield str(value)
        case "str":
            yield int(value) if value.isascii() and value.isdigit() else 0
        case "array" | "object":
            yield "none"
    yield [value]
    yield {"value": value}
    yield None


def _resolved(schema: Json, root: Json) -> Json:
    for _ in range(MAX_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(key) if isinstance(schema, dict) else None
    return None


def _branches(schema: Json, root: Json) -> Iterator[dict[str, Json]]:
    """Yield a schema and what it is combined from; unions included."""
    resolved = _resolved(schema, root)
    if not isinstance(resolved, dict):
        return
    yield resolved
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in resolved.get(keyword) or ():
            found = _resolved(branch, root)
            if isinstance(found, dict):
                yield found


def _enum(schema: Json, root: Json) -> list[Json]:
    return [m for branch in _branches(schema, root) for m in branch.get("enum") or ()]


def _items(schema: Json, root: Json) -> Json:
    found = (branch["items"] for branch in _branches(schema, root) if "items" in branch)
    return next(found, {})


def _property(schema: Json, root: Json, name: str) -> Json:
    found = (
        branch["properties"][name]
        for branch in _branches(schema, root)
        if name in (branch.get("properties") or {})
    )
    return next(found, {})
