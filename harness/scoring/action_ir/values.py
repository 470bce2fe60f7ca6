"""One value against one schema: type first, then what the type asks, then the enum.

The result is the canonical value: a declared number is a double, members of an array
with set semantics are unique and in the order of their texts. Values that no schema
declares stay as they were decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from harness.canonical import Json, canonical_json
from harness.scoring.action_ir.problem import InvalidActionError
from harness.scoring.action_ir.tools import JSON_TYPES, ValueSchema


def refuse(code: str, path: str, detail: str) -> NoReturn:
    """Raise the InvalidActionError of the schema stage."""
    raise InvalidActionError("schema", code, path, detail)


def canonical_value(value: Json, schema: ValueSchema, path: str) -> Json:
    """Return the canonical form of a value; raise InvalidActionError."""
    if type(value) not in JSON_TYPES[schema.type]:
        refuse("type_mismatch", path, f"expected {schema.type}")
    if schema.type == "number":
        value = _double(value, path)
    elif schema.items is not None:
        value = _array(value, schema.items, path, is_set=schema.set_semantics)
    elif schema.type == "object":
        value = canonical_members(
            value,
            schema.properties,
            schema.required,
            path,
            is_open=schema.additional_properties,
        )
    if schema.enum_texts is not None and canonical_json(value) not in schema.enum_texts:
        refuse("enum_mismatch", path, "the value is none of the enum")
    return value


def canonical_members(
    members: dict[str, Json],
    declared: Mapping[str, ValueSchema],
    required: frozenset[str],
    path: str,
    *,
    is_open: bool,
) -> dict[str, Json]:
    """Return the canonical form of arguments or of a nested object.

    Absent required names come before undeclared ones, both before any value; values
    are judged in the order of their names. Raises InvalidActionError.
    """
    if not required <= members.keys():
        absent = sorted(required - members.keys())
        refuse("missing_argument", path, f"without {absent}")
    if not is_open and not members.keys() <= declared.keys():
        undeclared = sorted(members.keys() - declared.keys())
        refuse("extra_argument", path, f"undeclared {undeclared}")
    return {
        name: canonical_value(members[name], declared[name], f"{path}.{name}")
        if name in declared
        else members[name]
        for name in sorted(members)
    }


def _double(value: float, path: str) -> float:
    try:
        return float(value)
    except OverflowError:
        refuse("non_finite_number", path, "larger than any double")


def _array(
    members: list[Json], items: ValueSchema, path: str, *, is_set: bool
) -> list[Json]:
    canonical = [
        canonical_value(member, items, f"{path}[{index}]")
        for index, member in enumerate(members)
    ]
    if not is_set:
        return canonical
    by_text = {canonical_json(member): member for member in canonical}
    return [by_text[text] for text in sorted(by_text)]
