"""Types and equality of JSON values as tool schemas see them.

A boolean is nothing but a boolean, `integer` is a Python int (so `3.0` is none),
`number` is an int or a float. `enum`, `const` and `uniqueItems` share one equality:
numbers by value (`1` equals `1.0`, exactly, at any size), booleans apart, objects
without order, arrays with order. Comparison with gold is stricter and lives in
`canonical.json_equal`.
"""

from __future__ import annotations

from typing import Final

from harness.canonical import Json

PYTHON_TYPES: Final[dict[str, frozenset[type]]] = {
    "null": frozenset({type(None)}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "string": frozenset({str}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}
"""The Python types that each `type` word admits."""

_NAMES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def type_name(value: Json) -> str:
    """Return the schema word for the value's own type."""
    return _NAMES[type(value)]


def equality_key(value: Json) -> object:
    """Return a hashable key; equal keys are equal values under the enum rule."""
    kind = type(value)
    if kind is dict:
        return (
            "object",
            frozenset((name, equality_key(item)) for name, item in value.items()),
        )
    if kind is list:
        return ("array", tuple(map(equality_key, value)))
    if kind is bool:
        return ("boolean", value)
    return value
