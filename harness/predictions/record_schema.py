"""JSON Schema draft 2020-12 for records, judged by the `jsonschema` package.

`format` asserts nothing, references are looked up in the schema and the published
meta-schemas and never on a network, and an embedded `$schema` changes no rule. What
ends the package itself has a verdict here: NaN and infinity are multiples of nothing,
and a schema that cannot be followed to an end is `undecided`. The limits are counted
in steps of the schema, not in the interpreter's frames, so they hold on every Python.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import isfinite
from typing import Any, Final

from harness.canonical import Json
from harness.errors import UsageError, Violation
from harness.recursion import is_nested_deeper, room_to_recurse
from harness.scoring.json_record.plain_schema import Check, plain_check
from harness.scoring.json_record.record import SchemaVerdict

MAX_SCHEMA_DEPTH: Final = 64
"""Levels of arrays and objects in the schema document."""
MAX_STEPS: Final = 512
"""Sub-schemas within each other while one answer is judged; recursion ends here."""
MAX_UNIQUE_DEPTH: Final = 256
"""Levels of an array whose items are compared with each other."""

_DEFECTS: Final = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    RecursionError,
    re.error,
)
"""What the package raises where a reference leads to something that is no schema."""


class _EndlessError(Exception):
    """The schema leads deeper than its limits say."""


class CompiledSchema:
    """A schema that passed the meta-schema; judges decoded answers."""

    def __init__(
        self, document: Json, validator: Any, failures: tuple[type[Exception], ...]
    ) -> None:
        self._document = document
        self._validator = validator
        self._failures = failures
        self._check = (
            self._by_library(document)
            if _moves_references(document)
            else plain_check(document, self._by_library)
        )

    @property
    def document(self) -> Json:
        """The schema as it was declared."""
        return self._document

    def judge(self, value: Json) -> SchemaVerdict:
        """Say whether a value satisfies the schema; never raises."""
        try:
            return "valid" if self._check(value) else "invalid"
        except self._failures:
            return "undecided"

    def judge_by_library(self, value: Json) -> SchemaVerdict:
        """Judge the long way alone."""
        try:
            return "valid" if self._by_library(self._document)(value) else "invalid"
        except self._failures:
            return "undecided"

    def _by_library(self, node: Json) -> Check:
        validator = self._validator.evolve(schema=node)

        def check(value: Json) -> bool:
            with room_to_recurse():
                return bool(validator.is_valid(value))

        return check


def compile_schema(document: Json, *, where: str = "$") -> CompiledSchema:
    """Compile a schema once for all rows.

    Raises UsageError (`eval_cli_invalid`) with every violation of the meta-schema, or
    for a document that is nested too deep.
    """
    if is_nested_deeper(document, MAX_SCHEMA_DEPTH):
        raise unusable_schema([(where, f"nested past {MAX_SCHEMA_DEPTH} levels")])
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import UnknownType
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    meta = Draft202012Validator(
        Draft202012Validator.META_SCHEMA, format_checker=FormatChecker(["regex"])
    )
    with room_to_recurse(), warnings.catch_warnings():
        # A pattern may be one that a later Python is going to read otherwise.
        warnings.simplefilter("ignore", FutureWarning)
        found = {
            (f"{where}{error.json_path[1:]}", error.message)
            for error in meta.iter_errors(document)
        }
    if found:
        raise unusable_schema(sorted(found))
    validator = _validator_class()(
        document, registry=Registry(), format_checker=_steps()[0]
    )
    return CompiledSchema(
        document, validator, (*_DEFECTS, _EndlessError, UnknownType, Unresolvable)
    )


def _moves_references(document: Json) -> bool:
    """Tell whether a reference may mean another place below than at the root."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "$dynamicRef" in node or ("$id" in node and node is not document):
                return True
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return False


def unusable_schema(problems: list[tuple[str, str]]) -> UsageError:
    """Build the one error for a schema that cannot be used, from (where, seen)."""
    return UsageError(
        "eval_cli_invalid",
        "the schema cannot be used",
        violations=tuple(
            Violation(
                "eval_cli_invalid",
                where,
                "the schema cannot be used",
                "JSON Schema draft 2020-12 with `type: object` or `properties`",
                _cut(seen),
                "mend the schema and score again; nothing was written",
            )
            for where, seen in problems
        ),
    )


def _cut(text: str, width: int = 300) -> str:
    return text if len(text) <= width else f"{text[:width]} ..."


@cache
def _steps() -> tuple[Any, ...]:
    """Return one format checker for every step, each with its number.

    A validator hands its format checker down to every validator of a sub-schema, so
    this is where a count of steps can travel. With no format to check it asserts none.
    """
    from jsonschema import FormatChecker

    checkers = tuple(FormatChecker([]) for _ in range(MAX_STEPS + 1))
    for number, checker in enumerate(checkers):
        checker.number = number
    return checkers


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    stock = Draft202012Validator.VALIDATORS
    kind: Any = extend(
        Draft202012Validator,
        {
            "additionalProperties": _in_order(stock["additionalProperties"]),
            "multipleOf": _finite(stock["multipleOf"]),
            "uniqueItems": _bounded(stock["uniqueItems"]),
        },
    )
    evolve, steps = kind.evolve, _steps()

    def evolve_one_step(self: Any, **changes: Any) -> Any:
        number = self.format_checker.number + 1
        if number > MAX_STEPS:
            raise _EndlessError
        schema = changes.get("schema", self.schema)
        if isinstance(schema, dict) and "$schema" in schema:
            # The package would go on with another class, without these limits.
            plain = {name: schema[name] for name in schema if name != "$schema"}
            changes["schema"] = plain
        return evolve(self, format_checker=steps[number], **changes)

    kind.evolve = evolve_one_step
    return kind


def _in_order(stock: Any) -> Any:
    """Return `additionalProperties` that goes through members as they stand.

    The package goes through a set, so which of two problems comes first, a violation
    or a reference to nowhere, would depend on the hash seed.
    """

    def additional_properties(
        validator: Any, below: Json, instance: Json, schema: Json
    ) -> Iterator[Any]:
        if not isinstance(below, dict) or not isinstance(instance, dict):
            yield from stock(validator, below, instance, schema) or ()
            return
        declared = schema.get("properties", {})
        pattern = "|".join(schema.get("patternProperties", {}))
        for name, value in instance.items():
            if name not in declared and not (pattern and re.search(pattern, name)):
                yield from validator.descend(value, below, path=name)

    return additional_properties


def _finite(stock: Any) -> Any:
    """Return `multipleOf` with a verdict where the package divides past a double."""

    def multiple_of(
        validator: Any, divisor: Json, instance: Json, schema: Json
    ) -> Iterator[Any]:
        if isinstance(instance, float) and not isfinite(instance):
            yield _violation("a number that is not finite is a multiple of nothing")
            return
        try:
            yield from stock(validator, divisor, instance, schema)
        except OverflowError:
            if (Fraction(instance) / Fraction(divisor)).denominator != 1:
                yield _violation("not a multiple")

    return multiple_of


def _bounded(stock: Any) -> Any:
    """Return `uniqueItems` that does not compare past the recursion of some Pythons."""

    def unique_items(
        validator: Any, is_asked: Json, instance: Json, schema: Json
    ) -> Iterator[Any]:
        if is_asked and is_nested_deeper(instance, MAX_UNIQUE_DEPTH):
            raise _EndlessError
        yield from stock(validator, is_asked, instance, schema) or ()

    return unique_items


def _violation(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)
