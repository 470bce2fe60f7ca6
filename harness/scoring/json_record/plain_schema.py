"""The short way for the parts of a schema that state types, members and bounds.

Such parts (all of a schema derived from rows, and most of what people write) need no
validator library: a compiled check does the same at a small part of the cost. A node
with any other asserting keyword goes whole, with all that is below it, to the library.
A test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from harness.canonical import Json

Check = Callable[[Json], bool]
"""Takes a decoded value and says whether it satisfies a schema."""
Library = Callable[[Json], Check]
"""Compiles a node that has no short way."""

LIBRARY_ONLY: Final = frozenset(
    {
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "maxProperties",
        "minProperties",
        "multipleOf",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Asserting keywords of draft 2020-12 that have no short way."""
_MEMBERS: Final = frozenset({"properties", "required", "additionalProperties"})


def plain_check(node: Json, library: Library) -> Check:
    """Compile a schema that passed the meta-schema.

    The check raises only what a check of the library raises.
    """
    if isinstance(node, bool):
        return _constant(node)
    listed = [node["const"]] if "const" in node else []
    listed += node.get("enum", ())
    if node.keys() & LIBRARY_ONLY or any(isinstance(v, dict | list) for v in listed):
        return library(node)
    checks = [
        *([_type(node["type"])] if "type" in node else ()),
        *([_one_of(node["enum"])] if "enum" in node else ()),
        *([_one_of([node["const"]])] if "const" in node else ()),
        *([_members(node, library)] if node.keys() & _MEMBERS else ()),
        *([_items(plain_check(node["items"], library))] if "items" in node else ()),
        *(_bound(keyword, node[keyword]) for keyword in BOUNDS if keyword in node),
        *([_pattern(node["pattern"])] if "pattern" in node else ()),
    ]
    return checks[0] if len(checks) == 1 else _all(tuple(checks))


def _constant(verdict: bool) -> Check:
    return lambda _: verdict


def _all(checks: tuple[Check, ...]) -> Check:
    def check(value: Json) -> bool:
        for each in checks:  # noqa: SIM110 (a generator costs more than the checks)
            if not each(value):
                return False
        return True

    return check


def _is_integer(value: Json) -> bool:
    kind = type(value)
    return kind is int or (kind is float and value.is_integer())


_TYPES: Final[Mapping[str, Check]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": lambda value: type(value) in (int, float),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def _type(names: Json) -> Check:
    if isinstance(names, str):
        return _TYPES[names]
    checks = tuple(_TYPES[name] for name in names)
    return lambda value: any(check(value) for check in checks)


def _one_of(listed: list[Json]) -> Check:
    # 1 and 1.0 are one value here, 1 and true are two.
    known = frozenset((isinstance(value, bool), value) for value in listed)
    return lambda value: (
        not isinstance(value, dict | list) and (isinstance(value, bool), value) in known
    )


def _members(node: Mapping[str, Json], library: Library) -> Check:
    declared = {
        name: plain_check(under, library)
        for name, under in node.get("properties", {}).items()
    }
    others = plain_check(node.get("additionalProperties", True), library)
    return _object(tuple(node.get("required", ())), declared, others)


def _object(
    required: tuple[str, ...], declared: Mapping[str, Check], others: Check
) -> Check:
    def check(value: Json) -> bool:
        if not isinstance(value, dict):
            return True
        for name in required:
            if name not in value:
                return False
        for name, member in value.items():  # noqa: SIM110
            if not declared.get(name, others)(member):
                return False
        return True

    return check


def _items(item: Check) -> Check:
    return lambda value: not isinstance(value, list) or all(map(item, value))


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


BOUNDS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "minLength": lambda value, bound: type(value) is not str or len(value) >= bound,
    "maxLength": lambda value, bound: type(value) is not str or len(value) <= bound,
    "minItems": lambda value, bound: type(value) is not list or len(value) >= bound,
    "maxItems": lambda value, bound: type(value) is not list or len(value) <= bound,
    # Each is the negation of what breaks it: NaN breaks no bound.
    "minimum": lambda value, bound: not (_is_number(value) and value < bound),
    "maximum": lambda value, bound: not (_is_number(value) and value > bound),
    "exclusiveMinimum": lambda value, bound: not (_is_number(value) and value <= bound),
    "exclusiveMaximum": lambda value, bound: not (_is_number(value) and value >= bound),
}
"""Keywords of one number, by whether a value keeps to it."""


def _bound(keyword: str, bound: Json) -> Check:
    holds = BOUNDS[keyword]
    return lambda value: holds(value, bound)


def _pattern(pattern: str) -> Check:
    search = re.compile(pattern).search
    return lambda value: not isinstance(value, str) or search(value) is not None
