"""The form of a record, and everything that one says wrongly of itself.

A record may come from anywhere, so nothing behind this check has to ask again whether a
member is there or of which type it is. Members beyond these are let pass: each kind of
evaluation has some of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from types import NoneType
from typing import Final

from harness.canonical import Json, content_hash, json_equal
from harness.errors import Violation
from harness.evaluations.numbers import plain_numbers
from harness.evaluations.protocol import GROUPS, fingerprint
from harness.evaluations.record import (
    RECORD_FILE,
    RECORD_VERSION,
    is_of_another_version,
)

_ROUNDING: Final = Fraction(1, 10**9)
_Problem = tuple[str, str, str]
"""Place, what was expected, what was seen."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value of some types."""

    types: tuple[type, ...]
    expected: str

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        # True is an int to `isinstance`, and no number to anybody.
        sound = type(value) in self.types
        if sound and not (isinstance(value, float) and not isfinite(value)):
            return
        yield place, self.expected, f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class _OneOf:
    """A word out of a list."""

    words: tuple[str, ...]

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        if not (isinstance(value, str) and value in self.words):
            yield place, " or ".join(self.words), str(value)


@dataclass(frozen=True, slots=True)
class _Members:
    """An object with at least these members."""

    members: Mapping[str, _Shape]

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        if not isinstance(value, dict):
            yield place, "an object", f"a {type(value).__name__}"
            return
        for name, shape in self.members.items():
            where = f"{place}.{name}" if place else name
            if name not in value:
                yield where, "a member of a record", "nothing"
            else:
                yield from shape.problems(value[name], where)


@dataclass(frozen=True, slots=True)
class _Values:
    """An object of any names whose values have one shape."""

    each: _Shape

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        if not isinstance(value, dict):
            yield place, "an object", f"a {type(value).__name__}"
            return
        for name, member in value.items():
            yield from self.each.problems(member, f"{place}.{name}")


@dataclass(frozen=True, slots=True)
class _Items:
    """A list of values of one shape."""

    each: _Shape

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        if not isinstance(value, list):
            yield place, "a list", f"a {type(value).__name__}"
            return
        for index, member in enumerate(value):
            yield from self.each.problems(member, f"{place}[{index}]")


@dataclass(frozen=True, slots=True)
class _OrNull:
    """A value of a shape, or null."""

    shape: _Shape

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        if value is not None:
            yield from self.shape.problems(value, place)


@dataclass(frozen=True, slots=True)
class _Any:
    """Any value."""

    def problems(self, value: Json, place: str) -> Iterator[_Problem]:
        return iter(())


_Shape = _Leaf | _OneOf | _Members | _Values | _Items | _OrNull | _Any
_TEXT: Final = _Leaf((str,), "a text")
_COUNT: Final = _Leaf((int,), "an integer")
_NUMBER: Final = _Leaf((int, float), "a finite number")
_FLAG: Final = _Leaf((bool,), "true or false")
_OBJECT: Final = _Values(_Any())
_METRIC: Final = _Members({"value": _OrNull(_NUMBER)})
_CONDITION: Final = _Members(
    {"values": _Items(_Any()), "rows": _Items(_COUNT), "mixed": _FLAG}
)
_SUBJECT: Final = _Members(
    {
        "name": _TEXT,
        "role": _OneOf(("candidate", "comparator")),
        "model": _OBJECT,
        "metrics": _Values(_METRIC),
        "counts": _OBJECT,
        "conditions": _Values(_CONDITION),
        "decoding": _Members(
            {"requested": _OrNull(_OBJECT), "applied": _OrNull(_OBJECT)}
        ),
        "measurements": _Items(_OBJECT),
        "samples": _OrNull(_TEXT),
        "protocol": _Values(_OBJECT),
        "withheld": _OrNull(_TEXT),
    }
)
_RECORD: Final = _Members(
    {
        "record_version": _TEXT,
        "record_id": _TEXT,
        "kind": _TEXT,
        "status": _OneOf(("completed", "failed")),
        "error": _OrNull(_OBJECT),
        "parent": _OrNull(
            _Members(
                {"record_id": _TEXT, "record_hash": _OrNull(_TEXT), "statement": _TEXT}
            )
        ),
        "protocol": _Members(
            {
                "version": _TEXT,
                "fields": _Members(dict.fromkeys(GROUPS, _OBJECT)),
                "fingerprint": _TEXT,
            }
        ),
        "primary_metric": _Members(
            {"name": _TEXT, "version": _TEXT, "choices": _Items(_TEXT)}
        ),
        "scorer": _Members({"contract": _TEXT, "metric_version": _TEXT}),
        "subjects": _Items(_SUBJECT),
        "rescorable": _Members({"rescorable": _FLAG, "reasons": _Items(_OBJECT)}),
        "holdout": _OrNull(
            _Members({"rows_sha256": _TEXT, "uses_before": _COUNT, "statement": _TEXT})
        ),
        "artifacts": _Values(_TEXT),
    }
)


def problems_of(payload: Json) -> list[Violation]:
    """Return everything that a record says wrongly of itself; [] for a sound one."""
    found = list(_RECORD.problems(payload, ""))
    if is_of_another_version(payload):
        seen = f"{payload['record_version']}, of another version"
        found.append(("record_version", RECORD_VERSION, seen))
    if not found:
        for check in _AGREEMENTS:
            found += check(payload)
    return [_violation(*each) for each in found]


def _figures(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    """Yield rates whose two parts are not both counts, or both left out."""
    for index, subject in enumerate(payload["subjects"]):
        for name, figure in subject["metrics"].items():
            parts = [figure.get("numerator"), figure.get("denominator")]
            where = f"subjects[{index}].metrics.{name}"
            if [type(part) for part in parts] not in ([int, int], [NoneType] * 2):
                yield where, "counts under a rate", str(parts)
            elif parts[0] is not None and not 0 <= parts[0] <= parts[1]:
                yield where, "a numerator from 0 to the denominator", str(parts)
            elif not _is_rate(figure["value"], *parts):
                yield where, "the rate of its counts", f"{figure['value']} of {parts}"


def _is_rate(value: Json, numerator: int | None, denominator: int | None) -> bool:
    """Tell whether a value can be the rate of two counts; true where there are none."""
    if value is None or numerator is None or not denominator:
        return True
    return bool(abs(Fraction(value) - Fraction(numerator, denominator)) < _ROUNDING)


def _candidates(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    """Yield a completed evaluation of nobody."""
    roles = [each["role"] for each in payload["subjects"]]
    if payload["status"] == "completed" and "candidate" not in roles:
        yield "subjects", "a candidate", ", ".join(roles) or "nobody"


def _texts(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    """Yield a record with text or numbers that no JSON in UTF-8 can hold."""
    try:
        content_hash(payload)
    except ValueError as error:
        yield "", "finite numbers and Unicode text", str(error)


def _fingerprint(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    protocol = payload["protocol"]
    groups = protocol["fields"]
    try:
        plain = plain_numbers(groups)
        own = fingerprint(groups, protocol["version"])
    except ValueError as error:
        yield "protocol.fields", "numbers that can be compared", str(error)
        return
    if not json_equal(plain, groups):
        yield "protocol.fields", "whole numbers as integers", "floats"
    if protocol["fingerprint"] != own:
        yield "protocol.fingerprint", own, protocol["fingerprint"]


def _names(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    names = [each["name"] for each in payload["subjects"]]
    if len(set(names)) != len(names):
        yield "subjects", "names that name one subject each", ", ".join(names)


def _choice(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    primary = payload["primary_metric"]
    if primary["name"] not in primary["choices"]:
        yield "primary_metric.name", ", ".join(primary["choices"]), primary["name"]


def _numbers(payload: Mapping[str, Json]) -> Iterator[_Problem]:
    """Yield the subjects with values that no JSON file can hold."""
    for index, subject in enumerate(payload["subjects"]):
        try:
            content_hash(plain_numbers(subject))
            for figure in subject["metrics"].values():
                float(figure["value"] or 0)
        except (ValueError, OverflowError) as error:
            yield f"subjects[{index}]", "finite numbers", str(error)


_AGREEMENTS: Final[tuple[Callable[[Mapping[str, Json]], Iterator[_Problem]], ...]] = (
    _fingerprint,
    _names,
    _choice,
    _candidates,
    _figures,
    _numbers,
    _texts,
)
"""What has to agree within a record whose form is right."""


def _violation(where: str, expected: str, actual: str) -> Violation:
    return Violation(
        "eval_artifact_invalid",
        f"{RECORD_FILE}, {where}" if where else RECORD_FILE,
        "the record does not say what a record says",
        expected[:200],
        actual[:200],
        "bring back the folder as it was written",
    )
