"""Slot sources and filters: where the values of a template's slots come from.

A source yields typed values, each with the fixture rows that it stands for. A
filter is a conjunction of `field operator literal`; a missing field makes it false
(`spec/executable-evaluator.md` 1.7).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from harness.benchmark.fixtures import Fixtures, Row
from harness.benchmark.pack_python import (
    NotPythonError,
    literal_of,
    parse_expression,
)
from harness.benchmark.pack_tools import PackTool
from harness.canonical import Json, canonical_json, type_tag

SourceKind = Literal["fixture", "enum", "literal", "range", "absent"]
MAX_RANGE: Final = 100_000
"""Most values that one range may have."""

_RANGE_KEY = re.compile(r"([{,]\s*)(min|max|step)(\s*:)")
_BARE = re.compile(r"[A-Za-z_][\w-]*\.[A-Za-z_]\w*")


class SlotError(ValueError):
    """A source or filter that cannot be read or yields nothing usable."""


@dataclass(frozen=True, slots=True)
class SlotSource:
    """One parsed source."""

    kind: SourceKind
    target: tuple[str, ...]
    """Collection and field, tool and parameter, or the absent collection."""
    values: tuple[Json, ...] = ()
    """The values of `literal` and `range`."""

    def same_kind(self, other: SlotSource) -> bool:
        """Tell whether a correction may draw from the other source."""
        return self.kind == other.kind and self.target == other.target


@dataclass(frozen=True, slots=True)
class Candidate:
    """One value that a slot can take."""

    value: Json
    references: tuple[str, ...] = ()
    """Fixture references, canonical JSON, of the rows that hold the value."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One term of a filter."""

    field: str
    operator: str
    literal: Json

    def holds(self, row: Row) -> bool:
        """Tell whether the row satisfies the term."""
        if self.field not in row:
            return False
        return _OPERATORS[self.operator](row[self.field], self.literal)


def parse_source(text: str) -> SlotSource:
    """Read a source; raise SlotError."""
    kind, colon, rest = text.partition(":")
    rest = rest.strip()
    if not colon and _BARE.fullmatch(text.strip()):
        kind, rest = "fixture", text.strip()
    if kind == "fixture":
        return SlotSource("fixture", _pair(rest, "<collection>.<field>"))
    if kind == "enum":
        return SlotSource("enum", _pair(rest, "<tool>.<parameter>"))
    if kind == "absent" and rest:
        return SlotSource("absent", (rest,))
    if kind == "literal":
        value = _literal(rest)
        values = tuple(value) if isinstance(value, list) else (value,)
        return SlotSource("literal", (), values)
    if kind == "range":
        return SlotSource("range", (), _range(rest))
    raise SlotError(
        f"{text!r} is no slot source; one of fixture:collection.field, "
        "enum:tool.parameter, literal:value, range:{min, max, step}, absent:collection"
    )


def parse_filter(text: str) -> tuple[Condition, ...]:
    """Read a filter; raise SlotError."""
    try:
        tree = parse_expression(text)
    except NotPythonError as error:
        raise SlotError(f"filter {text!r} cannot be read: {error}") from None
    terms = tree.values if isinstance(tree, ast.BoolOp) else [tree]
    if isinstance(tree, ast.BoolOp) and not isinstance(tree.op, ast.And):
        raise SlotError(f"filter {text!r} is not a conjunction; only `and` is allowed")
    return tuple(_condition(term, text) for term in terms)


def source_values(
    source: SlotSource,
    conditions: tuple[Condition, ...],
    fixtures: Fixtures,
    tools: dict[str, PackTool],
) -> tuple[Candidate, ...]:
    """Return the distinct values of a source in its own order; raise SlotError."""
    if conditions and source.kind != "fixture":
        raise SlotError("only a fixture source can be filtered")
    if source.kind == "fixture":
        collection, field = source.target
        return _fixture_values(collection, field, conditions, fixtures)
    if source.kind == "enum":
        tool = tools.get(source.target[0])
        values = tool.enum(source.target[1]) if tool is not None else None
        if values is None:
            raise SlotError(f"no enum at {'.'.join(source.target)}")
    elif source.kind == "absent":
        values = list(fixtures.absent_ids.get(source.target[0], ()))
        if not values:
            raise SlotError(f"manifest.absent_ids names none for {source.target[0]!r}")
    else:
        values = list(source.values)
    distinct: dict[str, Json] = {}
    for value in values:
        distinct.setdefault(_typed_key(value), value)
    return tuple(Candidate(value) for value in distinct.values())


def _typed_key(value: Json) -> str:
    return f"{type_tag(value)} {canonical_json(value)}"


def _fixture_values(
    collection: str, field: str, conditions: tuple[Condition, ...], fixtures: Fixtures
) -> tuple[Candidate, ...]:
    rows = fixtures.collections.get(collection)
    if rows is None:
        raise SlotError(f"the fixtures have no collection {collection!r}")
    if not any(field in row for row in rows):
        raise SlotError(f"no row of {collection!r} has a field {field!r}")
    found: dict[str, tuple[Json, list[str]]] = {}
    for row in rows:
        if field not in row or not all(term.holds(row) for term in conditions):
            continue
        _, references = found.setdefault(_typed_key(row[field]), (row[field], []))
        reference = fixtures.reference(collection, row)
        if reference is not None:
            references.append(reference)
    if not found:
        raise SlotError(f"no row of {collection!r} passes the filter")
    return tuple(Candidate(value, tuple(refs)) for value, refs in found.values())


def _pair(text: str, expected: str) -> tuple[str, str]:
    left, dot, right = text.partition(".")
    if not (left and dot and right):
        raise SlotError(f"{text!r} is not {expected}")
    return left, right


def _literal(text: str) -> Json:
    try:
        plain = _plain(literal_of(parse_expression(text)))
        canonical_json(plain).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        raise SlotError(f"{text!r} is no literal: {error}") from None
    return plain


def _plain(value: Json) -> Json:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("keys are texts")
        return {key: _plain(item) for key, item in value.items()}
    type_tag(value)
    return value


def _range(text: str) -> tuple[Json, ...]:
    value = _literal(_RANGE_KEY.sub(r'\1"\2"\3', text))
    if not isinstance(value, dict) or not {"min", "max"} <= value.keys():
        raise SlotError(f"{text!r} is not {{min, max[, step]}}")
    if value.keys() - {"min", "max", "step"}:
        raise SlotError(f"{text!r} has keys other than min, max and step")
    low, high, step = value["min"], value["max"], value.get("step", 1)
    if any(type(number) is not int for number in (low, high, step)) or step == 0:
        raise SlotError(f"{text!r} needs integers and a step that is not 0")
    step = abs(step) if low <= high else -abs(step)
    numbers = range(low, high + (1 if step > 0 else -1), step)
    if len(numbers) > MAX_RANGE:
        raise SlotError(f"{text!r} has more than {MAX_RANGE} values")
    return tuple(numbers)


def _condition(term: ast.expr, text: str) -> Condition:
    if not (
        isinstance(term, ast.Compare)
        and len(term.ops) == 1
        and isinstance(term.left, ast.Name)
    ):
        raise SlotError(
            f"filter {text!r}: each term is a field, one operator and a literal"
        )
    operator = _OPERATOR_NAMES.get(type(term.ops[0]))
    if operator is None:
        raise SlotError(f"filter {text!r}: operators are {', '.join(_OPERATORS)}")
    try:
        literal = _right_side(term.comparators[0])
    except (ValueError, TypeError) as error:
        raise SlotError(f"filter {text!r}: no literal on the right: {error}") from None
    if operator in ("in", "not in") and not isinstance(literal, list):
        raise SlotError(f"filter {text!r}: `{operator}` needs a list on the right")
    return Condition(term.left.id, operator, literal)


def _right_side(node: ast.expr) -> Json:
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    return _plain(literal_of(node))


_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
"""JSON's spellings, which authors of YAML write."""


def _ordered(compare: Callable[[Json, Json], bool]) -> Callable[[Json, Json], bool]:
    def holds(left: Json, right: Json) -> bool:
        numbers = _number(left) and _number(right)
        texts = isinstance(left, str) and isinstance(right, str)
        return (numbers or texts) and compare(left, right)

    return holds


def _number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(left: Json, right: Json) -> bool:
    if _number(left) and _number(right):
        return bool(left == right)
    return type_tag(left) == type_tag(right) and bool(left == right)


def _contained(left: Json, right: Json) -> bool:
    return any(_equal(left, item) for item in right)


_OPERATORS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "in": _contained,
    "not in": lambda left, right: not _contained(left, right),
}
_OPERATOR_NAMES: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
