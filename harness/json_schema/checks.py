"""Schemas compiled to closures: value in, failures out, in a fixed order.

Inputs are schemas that `definition` has accepted, so nothing here can fail on the
schema's account. A value of the wrong type is reported once and nothing else about
it. Otherwise the order is: `$ref`, `allOf`, `enum`, `const`, the keywords of the
value's type, `anyOf`, `oneOf`, `not`; within an object the missing names in
`required` order, the declared properties in declared order, the unknown names
sorted. The candidate's key order never changes the result.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from harness.canonical import Json
from harness.json_schema.patterns import compile_search
from harness.json_schema.references import target_of
from harness.json_schema.values import PYTHON_TYPES, equality_key, type_name

Path = tuple[Any, ...]
"""A chain `(parent, key)`; `()` is the root. Rendered only when something fails."""
Failures = list[dict[str, Json]]
Check = Callable[[Json, Path, Failures], None]


def render(path: Path) -> str:
    """Return the argument's name: `limit`, `filter.tags[0]`, or `$` for the root."""
    keys: list[str | int] = []
    while path:
        path, key = path
        keys.append(key)
    if not keys:
        return "$"
    text = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(keys)
    )
    return text.removeprefix(".")


class Compiler:
    """Compiles the schemas of one document, each reference target once."""

    def __init__(self, root: dict[str, Json]) -> None:
        self.root = root
        self._done: dict[int, Check] = {}

    def compile(self, schema: dict[str, Json]) -> Check:
        """Return the check of one schema object."""
        done = self._done.get(id(schema))
        if done is None:
            done = self._done[id(schema)] = self._compile(schema)
        return done

    def _compile(self, schema: dict[str, Json]) -> Check:
        before = [*self._references(schema), *_constants(schema)]
        after = self._branches(schema)
        special: dict[type, list[Check]] = {
            str: _string_checks(schema),
            int: _number_checks(schema),
            float: _number_checks(schema),
            list: self._array_checks(schema),
            dict: self._object_checks(schema),
        }
        shared = (*before, *after)
        steps = {
            kind: (*before, *checks, *after)
            for kind, checks in special.items()
            if checks
        }
        words = _type_words(schema)
        if words is None:
            return _untyped(steps, shared)
        return _typed(words, steps, shared)

    def _references(self, schema: dict[str, Json]) -> list[Check]:
        parts = [*target_of(self.root, schema), *schema.get("allOf", ())]
        return [self.compile(part) for part in parts]

    def _branches(self, schema: dict[str, Json]) -> list[Check]:
        checks = []
        if "anyOf" in schema:
            checks.append(_any_of([self.compile(part) for part in schema["anyOf"]]))
        if "oneOf" in schema:
            checks.append(_one_of([self.compile(part) for part in schema["oneOf"]]))
        if "not" in schema:
            checks.append(_not(self.compile(schema["not"])))
        return checks

    def _array_checks(self, schema: dict[str, Json]) -> list[Check]:
        checks = _size_checks(
            schema, "minItems", "maxItems", "array_too_short", "array_too_long"
        )
        if schema.get("uniqueItems"):
            checks.append(_unique_items)
        if "items" in schema:
            checks.append(_items(self.compile(schema["items"])))
        return checks

    def _object_checks(self, schema: dict[str, Json]) -> list[Check]:
        checks = _size_checks(
            schema,
            "minProperties",
            "maxProperties",
            "too_few_properties",
            "too_many_properties",
        )
        if schema.get("required"):
            checks.append(_required(tuple(schema["required"])))
        properties = schema.get("properties", {})
        if properties:
            checks.append(
                _properties(
                    tuple(
                        (name, self.compile(part)) for name, part in properties.items()
                    )
                )
            )
        if schema.get("additionalProperties") is False:
            checks.append(_no_others(frozenset(properties)))
        return checks


def _type_words(schema: dict[str, Json]) -> list[str] | None:
    words = schema.get("type")
    return [words] if isinstance(words, str) else words


def _untyped(steps: dict[type, tuple[Check, ...]], shared: tuple[Check, ...]) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        for step in steps.get(type(value), shared):
            step(value, path, out)

    return check


def _typed(
    words: list[str], steps: dict[type, tuple[Check, ...]], shared: tuple[Check, ...]
) -> Check:
    table = {
        kind: steps.get(kind, shared) for word in words for kind in PYTHON_TYPES[word]
    }

    def check(value: Json, path: Path, out: Failures) -> None:
        applicable = table.get(type(value))
        if applicable is None:
            out.append(
                {
                    "reason": "argument_type_mismatch",
                    "argument": render(path),
                    "expected": words,
                    "actual": type_name(value),
                }
            )
            return
        for step in applicable:
            step(value, path, out)

    return check


def _constants(schema: dict[str, Json]) -> list[Check]:
    checks = []
    if "enum" in schema:
        keys = frozenset(map(equality_key, schema["enum"]))
        checks.append(
            _predicate(
                lambda value: equality_key(value) in keys,
                "argument_not_in_enum",
                schema["enum"],
            )
        )
    if "const" in schema:
        key = equality_key(schema["const"])
        checks.append(
            _predicate(
                lambda value: equality_key(value) == key,
                "argument_not_equal_const",
                schema["const"],
            )
        )
    return checks


def _predicate(holds: Callable[[Any], bool], reason: str, expected: Json) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        if not holds(value):
            out.append(
                {"reason": reason, "argument": render(path), "expected": expected}
            )

    return check


def _size_checks(
    schema: dict[str, Json], least: str, most: str, too_small: str, too_large: str
) -> list[Check]:
    checks = []
    if least in schema:
        low = schema[least]
        checks.append(_predicate(lambda value: len(value) >= low, too_small, low))
    if most in schema:
        high = schema[most]
        checks.append(_predicate(lambda value: len(value) <= high, too_large, high))
    return checks


def _string_checks(schema: dict[str, Json]) -> list[Check]:
    checks = _size_checks(
        schema, "minLength", "maxLength", "string_too_short", "string_too_long"
    )
    if "pattern" in schema:
        pattern = schema["pattern"]
        checks.append(
            _predicate(compile_search(pattern), "string_pattern_mismatch", pattern)
        )
    return checks


def _number_checks(schema: dict[str, Json]) -> list[Check]:
    tests: list[tuple[str, str, Callable[[Any, Any], bool]]] = [
        ("minimum", "number_below_minimum", lambda value, bound: value >= bound),
        ("maximum", "number_above_maximum", lambda value, bound: value <= bound),
        ("exclusiveMinimum", "number_not_above", lambda value, bound: value > bound),
        ("exclusiveMaximum", "number_not_below", lambda value, bound: value < bound),
        ("multipleOf", "not_a_multiple", _is_multiple),
    ]
    return [
        _bound(holds, schema[keyword], reason)
        for keyword, reason, holds in tests
        if keyword in schema
    ]


def _bound(holds: Callable[[Any, Any], bool], bound: Json, reason: str) -> Check:
    return _predicate(lambda value: holds(value, bound), reason, bound)


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return _decimal(value) % _decimal(factor) == 0


def _decimal(value: int | float) -> Fraction:
    # The shortest decimal that reads as this float is what the author wrote, so
    # 0.3 is a multiple of 0.1 although the two doubles are not.
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _unique_items(value: Json, path: Path, out: Failures) -> None:
    first_seen: dict[object, int] = {}
    for index, item in enumerate(value):
        earlier = first_seen.setdefault(equality_key(item), index)
        if earlier != index:
            out.append(
                {
                    "reason": "array_items_repeat",
                    "argument": render(path),
                    "positions": [earlier, index],
                }
            )
            return


def _items(check_item: Check) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        for index, item in enumerate(value):
            check_item(item, (path, index), out)

    return check


def _required(names: tuple[str, ...]) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        for name in names:
            if name not in value:
                out.append(
                    {
                        "reason": "missing_required_argument",
                        "argument": render((path, name)),
                    }
                )

    return check


def _properties(checks: tuple[tuple[str, Check], ...]) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        for name, check_property in checks:
            if name in value:
                check_property(value[name], (path, name), out)

    return check


def _no_others(declared: frozenset[str]) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        if value.keys() <= declared:
            return
        out.extend(
            {"reason": "unknown_argument", "argument": render((path, name))}
            for name in sorted(value.keys() - declared)
        )

    return check


def _branch_failures(branches: list[Check], value: Json, path: Path) -> list[Failures]:
    results = []
    for branch in branches:
        found: Failures = []
        branch(value, path, found)
        results.append(found)
    return results


def _any_of(branches: list[Check]) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        results = _branch_failures(branches, value, path)
        if all(results):
            out.append(_no_branch("anyOf", path, results))

    return check


def _one_of(branches: list[Check]) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        results = _branch_failures(branches, value, path)
        matched = [index for index, found in enumerate(results) if not found]
        if not matched:
            out.append(_no_branch("oneOf", path, results))
        elif len(matched) > 1:
            out.append(
                {
                    "reason": "several_branches_matched",
                    "argument": render(path),
                    "branches": matched,
                }
            )

    return check


def _no_branch(keyword: str, path: Path, results: list[Failures]) -> dict[str, Json]:
    return {
        "reason": "no_branch_matched",
        "argument": render(path),
        "keyword": keyword,
        "branches": results,
    }


def _not(forbidden: Check) -> Check:
    def check(value: Json, path: Path, out: Failures) -> None:
        found: Failures = []
        forbidden(value, path, found)
        if not found:
            out.append({"reason": "forbidden_schema_matched", "argument": render(path)})

    return check
