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
import types
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Self

from harness.canonical import Json, content_hash
from harness.errors import EvidenceError

_Decoder = Callable[[Any, str], Any]


class Record:
    """Base of all evidence; subclasses are `@dataclass(frozen=True, slots=True)`."""

    __slots__ = ()
    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"detail"})

    def semantic_payload(self) -> dict[str, Json]:
        """Return all fields as plain JSON."""
        return {
            name: _plain(getattr(self, name), identity=False)
            for name in _shape(type(self)).fields
        }

    def identity_payload(self) -> dict[str, Json]:
        """Return the fields that change what the record means."""
        return {
            name: _plain(getattr(self, name), identity=True)
            for name in _shape(type(self)).identity
        }

    def identity_hash(self) -> str:
        """Return the content hash of the identity payload."""
        return content_hash(self.identity_payload())

    @classmethod
    def from_payload(cls, payload: Json, where: str = "$") -> Self:
        """Read a record back; raise EvidenceError for anything it cannot be."""
        if not isinstance(payload, dict):
            raise _refusal(where, "an object", payload)
        decoders = _decoders(cls)
        if payload.keys() != decoders.keys():
            missing = sorted(decoders.keys() - payload.keys())
            unknown = sorted(payload.keys() - decoders.keys())
            raise _refusal(
                where, f"the fields of {cls.__name__}", f"{missing=} {unknown=}"
            )
        return cls(
            **{
                name: decode(payload[name], f"{where}.{name}")
                for name, decode in decoders.items()
            }
        )


def _refusal(where: str, expected: str, actual: object) -> EvidenceError:
    return EvidenceError(
        "eval_evidence_invalid",
        "a record does not have the shape that its schema declares",
        where=where,
        expected=expected,
        actual=repr(actual)[:200],
        recovery="use the file that the run wrote; records are never edited",
    )


@dataclasses.dataclass(slots=True)
class _Shape:
    """What the codec knows of one record class, worked out once."""

    fields: tuple[str, ...]
    identity: tuple[str, ...]
    decoders: dict[str, _Decoder] | None = None


_SHAPES: dict[type, _Shape] = {}


def _shape(cls: Any) -> _Shape:
    shape = _SHAPES.get(cls)
    if shape is None:
        fields = tuple(field.name for field in dataclasses.fields(cls))
        identity = tuple(n for n in fields if n not in cls.OUTSIDE_IDENTITY)
        shape = _SHAPES[cls] = _Shape(fields, identity)
    return shape


def _decoders(cls: Any) -> dict[str, _Decoder]:
    shape = _shape(cls)
    if shape.decoders is None:
        hints = typing.get_type_hints(cls)
        shape.decoders = {name: _decoder(hints[name]) for name in shape.fields}
    return shape.decoders


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
        return lambda value, where: None if value is None else decode(value, where)
    if origin is tuple:
        return _tuple_of(_decoder(arguments[0]))
    if origin is dict:
        return _dict_of(_decoder(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_payload
    return _exactly(hint)


def _anything(value: Any, where: str) -> Any:  # noqa: ARG001
    return value


def _exactly(kind: type) -> _Decoder:
    def decode(value: Any, where: str) -> Any:
        if type(value) is not kind:
            raise _refusal(where, kind.__name__, value)
        return value

    return decode


def _one_of(words: frozenset[Any]) -> _Decoder:
    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, str) or value not in words:
            raise _refusal(where, f"one of {sorted(words)}", value)
        return value

    return decode


def _tuple_of(inner: _Decoder) -> _Decoder:
    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise _refusal(where, "a list", value)
        return tuple(inner(item, f"{where}[{i}]") for i, item in enumerate(value))

    return decode


def _dict_of(inner: _Decoder) -> _Decoder:
    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _refusal(where, "an object", value)
        return {key: inner(item, f"{where}.{key}") for key, item in value.items()}

    return decode
