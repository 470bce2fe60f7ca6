"""The short way for schemas that state types, members and bounds and nothing else.

Such schemas (all that are derived from rows, and most that people write) need no
validator library: a compiled check does the same at a small part of the cost. A
schema with any other asserting keyword, anywhere, has no short way and goes whole to
the library, so there is never a mixture. A test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from harness.canonical import Json

Check = Callable[[Json], bool]

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


def plain_check(node: Json) -> Check | None:
    """Compile a schema that passed the meta-schema; None where there is no short way.

    The check takes decoded JSON and says whether it satisfies the schema.
    """
    if isinstance(node, bool):
        return _constant(node)
    if node.keys() & LIBRARY_ONLY:
        return None
    checks: list[Check] = []
    if "type" in node:
        checks.append(_type(node["type"]))
    for keyword in ("enum", "const"):
        if keyword in node:
            listed = node[keyword] if keyword == "enum" else [node[keyword]]
            if any(isinstance(value, dict | list) for value in listed):
                return None
            checks.append(_one_of(listed))
    for build in (_members, _items):
        if not build(node, checks):
            return None
    checks += [_bound(keyword, node[keyword]) for keyword in BOUNDS if keyword in node]
    if "pattern" in node:
        checks.append(_pattern(node["pattern"]))
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


def _members(node: Mapping[str, Json], checks: list[Check]) -> bool:
    if not node.keys() & {"properties", "required", "additionalProperties"}:
        return True
    declared: dict[str, Check] = {}
    for name, under in node.get("properties", {}).items():
        check = plain_check(under)
        if check is None:
            return False
        declared[name] = check
    others = plain_check(node.get("additionalProperties", True))
    if others is None:
        return False
    checks.append(_object(tuple(node.get("required", ())), declared, others))
    return True


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


def _items(node: Mapping[str, Json], checks: list[Check]) -> bool:
    if "items" not in node:
        return True
    item = plain_check(node["items"])
    if item is None:
        return False
    checks.append(lambda value: not isinstance(value, list) or all(map(item, value)))
    return True


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
