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

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Self

from harness.canonical import Json, content_hash
from harness.errors import EvidenceError

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

    def semantic_payload(self) -> dict[str, Json]:
        """Return all fields as plain JSON."""
        shape = _shape(type(self))
        payload = dict(zip(shape.fields, shape.values(self), strict=True))
        for name in shape.nested:
            payload[name] = _plain(payload[name], identity=False)
        return payload

    def identity_payload(self) -> dict[str, Json]:
        """Return the fields that change what the record means."""
        shape = _shape(type(self))
        payload = dict(zip(shape.fields, shape.values(self), strict=True))
        for name in shape.outside:
            del payload[name]
        for name in shape.nested_inside:
            payload[name] = _plain(payload[name], identity=True)
        return payload

    def identity_hash(self) -> str:
        """Return the content hash of the identity payload."""
        return content_hash(self.identity_payload())

    @classmethod
    def from_payload(cls, payload: Json, where: str = "$") -> Self:
        """Read a record back; raise EvidenceError for anything it cannot be."""
        try:
            record: Self = _read(cls, payload)
        except _MisfitError as misfit:
            raise _refusal(where + misfit.path, misfit.expected, misfit.actual) from (
                None
            )
        return record


def _read(cls: Any, payload: Json) -> Any:
    if not isinstance(payload, dict):
        raise _MisfitError("an object", payload)
    decoders = _shape(cls).decoders
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """What the codec knows of one record class, worked out once."""

    fields: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    """Reads all fields of a record at once."""
    nested: tuple[str, ...]
    """Fields that may hold records or tuples; the others are plain JSON."""
    outside: tuple[str, ...]
    """Fields outside the identity."""
    nested_inside: tuple[str, ...]
    """Nested fields inside the identity."""
    decoders: dict[str, _Decoder]


_SHAPES: dict[type, _Shape] = {}


def _shape(cls: Any) -> _Shape:
    shape = _SHAPES.get(cls)
    if shape is None:
        shape = _SHAPES[cls] = _shape_of(cls)
    return shape


def _shape_of(cls: Any) -> _Shape:
    hints = typing.get_type_hints(cls)
    fields = tuple(field.name for field in dataclasses.fields(cls))
    nested = tuple(name for name in fields if _is_nested(hints[name]))
    get = operator.attrgetter(*fields)
    return _Shape(
        fields,
        get if len(fields) > 1 else lambda record: (get(record),),
        nested,
        tuple(name for name in fields if name in cls.OUTSIDE_IDENTITY),
        tuple(name for name in nested if name not in cls.OUTSIDE_IDENTITY),
        {name: _decoder(hints[name]) for name in fields},
    )


def _is_nested(hint: Any) -> bool:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_nested(inner) for inner in typing.get_args(hint))
    is_record = isinstance(hint, type) and issubclass(hint, Record)
    return is_record or typing.get_origin(hint) is tuple


def _plain(value: Any, *, identity: bool) -> Json:
    if isinstance(value, Record):
        return value.identity_payload() if identity else value.semantic_payload()
    if isinstance(value, tuple):
        return [_plain(item, identity=identity) for item in value]
    return value


def _decoder(hint: Any) -> _Decoder:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any:
        return _anything
    if origin is typing.Literal:
        return _one_of(frozenset(arguments))
    if origin in (typing.Union, types.UnionType):
        (inner,) = (a for a in arguments if a is not types.NoneType)
        decode = _decoder(inner)
        return lambda value: None if value is None else decode(value)
    if origin is tuple:
        return _tuple_of(_decoder(arguments[0]))
    if origin is dict:
        return _dict_of(_decoder(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return functools.partial(_read, hint)
    return _exactly(hint)


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
