"""Frozen records: what every piece of evidence is made of.

A record is a frozen slotted dataclass with three readings:

* `semantic_payload()`: everything, as plain JSON; what is written to disk;
* `identity_payload()`: everything but the record's *own* diagnostics (`detail` and
  what `OUTSIDE_IDENTITY` names), so that rewording a message forks no score;
* `identity_hash()`: the content hash of the identity payload.

`from_payload` is closed and strict: unknown or missing keys, a bool where an int
belongs, or a word outside its closed set raise EvidenceError. Nested keys named
`detail` inside JSON data are data and stay.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Self

from harness.canonical import Json, hash_bytes
from harness.errors import EvidenceError
from harness.evidence.record_code import (
    KEPT_TEXT,
    FieldRule,
    UnfitError,
    annotations_of,
    code_of,
    filling,
    is_list,
    optional_inner,
    rules_of,
)

_Decoder = Callable[[Any], Any]


class _MisfitError(Exception):
    """A value that its field cannot hold; the path is built on the way out."""

    def __init__(self, expected: str, actual: object) -> None:
        self.expected = expected
        self.actual = actual
        self.path = ""
        super().__init__(expected)

    def inside(self, step: str) -> None:
        """Note the field or index that the value was found under."""
        self.path = step + self.path


class Record:
    """Base of all evidence; subclasses are `@dataclass(frozen=True, slots=True)`."""

    __slots__ = ()
    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"detail"})

    def __init_subclass__(cls) -> None:
        # Of the two classes that `dataclass(slots=True)` makes the second is kept.
        if "__slots__" in cls.__dict__ and "__dataclass_fields__" in cls.__dict__:
            fill = filling(cls)
            if fill is not None:
                cls.__init__ = fill  # type: ignore[method-assign]

    def semantic_payload(self) -> dict[str, Json]:
        """Return all fields as plain JSON."""
        return code_of(type(self)).semantic_payload(self)

    def identity_payload(self) -> dict[str, Json]:
        """Return the fields that change what the record means."""
        return code_of(type(self)).identity_payload(self)

    def semantic_bytes(self) -> bytes:
        """Return the canonical JSON of the semantic payload; raises as encoding it."""
        return code_of(type(self)).semantic_text(self).encode("utf-8")

    def identity_bytes(self) -> bytes:
        """Return the canonical JSON of the identity payload; raises as encoding it."""
        return code_of(type(self)).identity_text(self).encode("utf-8")

    def identity_hash(self) -> str:
        """Return the content hash of the identity payload."""
        return hash_bytes(code_of(type(self)).identity_text(self).encode("utf-8"))

    def but(self, **changes: Any) -> Self:
        """Return this record with other values in some fields."""
        code = code_of(type(self))
        values = code.values(self)
        for name, value in changes.items():
            values[code.places[name]] = value
        return type(self)(*values)

    @classmethod
    def from_payload(cls, payload: Json, where: str = "$") -> Self:
        """Read a record back; raise EvidenceError for anything it cannot be."""
        try:
            record: Self = code_of(cls).read(payload)
        except (UnfitError, KeyError, TypeError):
            record = _walk(cls, payload, where)
        return record


class RepeatedRecord(Record):
    """Base of records that stand in several hashed ones: written as text only once.

    What such a record holds is never changed, its dictionaries included.
    """

    __slots__ = (KEPT_TEXT,)


def _walk(cls: Any, payload: Json, where: str) -> Any:
    """Read a record field by field, and name the first that does not fit."""
    try:
        return _read(cls, payload)
    except _MisfitError as misfit:
        raise _refusal(where + misfit.path, misfit.expected, misfit.actual) from None


def _read(cls: Any, payload: Json) -> Any:
    if not isinstance(payload, dict):
        raise _MisfitError("an object", payload)
    decoders = _decoders(cls)
    if payload.keys() != decoders.keys():
        missing = sorted(decoders.keys() - payload.keys())
        unknown = sorted(payload.keys() - decoders.keys())
        raise _MisfitError(f"the fields of {cls.__name__}", f"{missing=} {unknown=}")
    values = {}
    for name, decode in decoders.items():
        try:
            values[name] = decode(payload[name])
        except _MisfitError as misfit:
            misfit.inside(f".{name}")
            raise
    return cls(**values)


def _refusal(where: str, expected: str, actual: object) -> EvidenceError:
    return EvidenceError(
        "eval_evidence_invalid",
        "a record does not have the shape that its schema declares",
        where=where,
        expected=expected,
        actual=repr(actual)[:200],
        recovery="use the file that the run wrote; records are never edited",
    )


@functools.cache
def _decoders(cls: Any) -> dict[str, _Decoder]:
    rules = rules_of(cls)
    return {
        name: _ruled(_decoder(hint), rules.get(name))
        for name, hint in annotations_of(cls)
    }


def _decoder(hint: Any) -> _Decoder:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any:
        return _anything
    if origin is typing.Literal:
        return _one_of(frozenset(arguments))
    inner = optional_inner(hint)
    if inner is not None:
        decode = _decoder(inner)
        return lambda value: None if value is None else decode(value)
    if is_list(hint):
        return _tuple_of(_decoder(arguments[0]))
    if origin is dict:
        return _dict_of(_decoder(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return functools.partial(_read, hint)
    return _exactly(hint)


def _ruled(decode: _Decoder, rule: FieldRule | None) -> _Decoder:
    if rule is None:
        return decode
    expected, holds = rule.expected, rule.holds

    def ruled(value: Any) -> Any:
        found = decode(value)
        if not holds(found):
            raise _MisfitError(expected, found)
        return found

    return ruled


def _anything(value: Any) -> Any:
    return value


def _exactly(kind: type) -> _Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not kind:
            raise _MisfitError(kind.__name__, value)
        return value

    return decode


def _one_of(words: frozenset[Any]) -> _Decoder:
    def decode(value: Any) -> Any:
        if not isinstance(value, str) or value not in words:
            raise _MisfitError(f"one of {sorted(words)}", value)
        return value

    return decode


def _tuple_of(inner: _Decoder) -> _Decoder:
    def decode(value: Any) -> Any:
        if not isinstance(value, list):
            raise _MisfitError("a list", value)
        return tuple([_at(f"[{i}]", inner, item) for i, item in enumerate(value)])

    return decode


def _dict_of(inner: _Decoder) -> _Decoder:
    if inner is _anything:
        return _exactly(dict)

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _MisfitError("dict", value)
        return {key: _at(f".{key}", inner, item) for key, item in value.items()}

    return decode


def _at(step: str, inner: _Decoder, item: Any) -> Any:
    try:
        return inner(item)
    except _MisfitError as misfit:
        misfit.inside(step)
        raise
