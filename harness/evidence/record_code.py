"""The code of record classes, written from their annotations once a class.

As `dataclass` writes an `__init__`, this module writes what a record is filled in,
read back, made plain and written as text with: straight lines instead of a walk over
annotations for every record. `read` says only *that* a payload does not fit; the walk
in `records` says why. The text of a record is the canonical JSON of its payload.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from harness.canonical import Json, canonical_json, quoted

Fill = Callable[..., None]


@dataclasses.dataclass(frozen=True, slots=True)
class FieldRule:
    """What a field's value has to be beside its type: the metadata of `Annotated`.

    Holds where a record is read back; whoever makes one knows what to put in.
    """

    expected: str
    holds: Callable[[Any], bool]


class UnfitError(Exception):
    """A payload that is not one of the class; the walk says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class RecordCode:
    """What one record class can do."""

    read: Callable[[Json], Any]
    """Raises UnfitError, KeyError or TypeError for a payload that does not fit."""
    places: dict[str, int]
    """Where each field stands among the values."""
    values: Callable[[Any], list[Any]]
    semantic_payload: Callable[[Any], dict[str, Json]]
    identity_payload: Callable[[Any], dict[str, Json]]
    semantic_text: Callable[[Any], str]
    identity_text: Callable[[Any], str]


KEPT_TEXT: Final = "_identity_text"
"""The slot in which a class of records keeps its identity text, if it has one."""
_SCALARS: Final = {str: "str", int: "int", bool: "bool", float: "float"}
_CODES: dict[type, RecordCode] = {}
_TWINS: dict[type, type] = {}
"""For each class that `filling` wrote for: one of the same slots without a lock."""
_turn: Final = object.__dict__["__class__"].__set__


def code_of(cls: type) -> RecordCode:
    """Return the code of a record class."""
    code = _CODES.get(cls)
    if code is None:
        code = _CODES[cls] = _CodeWriter(cls).write()
    return code


def is_record(hint: Any) -> bool:
    """Tell whether an annotation is a class of records: the frozen dataclasses."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_list(hint: Any) -> bool:
    """Tell whether an annotation is of values that JSON has as a list."""
    return typing.get_origin(hint) in (tuple, Sequence)


def optional_inner(hint: Any) -> Any:
    """Return X of `X | None`; None for any other annotation."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return None
    (inner,) = (a for a in typing.get_args(hint) if a is not types.NoneType)
    return inner


class _CodeWriter:
    """Writes the functions of one class; expressions name what `_names` holds."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        self._outside = cls.OUTSIDE_IDENTITY
        hints = typing.get_type_hints(cls)
        self._hints = {field.name: hints[field.name] for field in _fields(cls)}
        self._rules = rules_of(cls)
        self._names: dict[str, Any] = {
            "Unfit": UnfitError,
            "cls": cls,
            "encode": canonical_json,
            "quote": quoted,
            "turn": _turn,
            "twin": _TWINS.get(cls),
        }

    def write(self) -> RecordCode:
        inside = {n: h for n, h in self._hints.items() if n not in self._outside}
        return RecordCode(
            self._function("payload", self._reading()),
            {name: place for place, name in enumerate(self._hints)},
            self._function(
                "r", [f"return [{', '.join(f'r.{n}' for n in self._hints)}]"]
            ),
            self._function("r", self._plain_object(self._hints, "semantic")),
            self._function("r", self._plain_object(inside, "identity")),
            self._function("r", self._text_object(self._hints, "semantic")),
            self._function("r", self._text_object(inside, "identity")),
        )

    def _function(self, argument: str, lines: list[str]) -> Callable[[Any], Any]:
        source = "\n ".join([f"def function({argument}):", *lines])
        place: dict[str, Any] = {}
        exec(source, self._names, place)  # noqa: S102 - written from annotations alone
        function: Callable[[Any], Any] = place["function"]
        return function

    def _named(self, value: Any) -> str:
        name = f"_{len(self._names)}"
        self._names[name] = value
        return name

    def _reading(self) -> list[str]:
        checks, values = [], []
        for name, hint in self._hints.items():
            check = self._check(hint, f"_{name}_")
            values.append(f"_{name}_" if check else self._read(hint, f"_{name}_"))
            checks += [check] if check else []
            rule = self._rules.get(name)
            if rule is not None:
                checks.append(f"{self._named(rule.holds)}(_{name}_)")
        return [
            f"if payload.__class__ is not dict or len(payload) != {len(self._hints)}:",
            " raise Unfit",
            *(f"_{name}_ = payload[{name!r}]" for name in self._hints),
            f"if not ({' and '.join(checks) or True}):",
            " raise Unfit",
            *self._filled(values),
        ]

    def _filled(self, values: list[str]) -> list[str]:
        """Return what makes a record of these values, past its `__init__` if it can."""
        if self._cls not in _TWINS or hasattr(self._cls, "__post_init__"):
            return [f"return cls({', '.join(values)})"]
        fields = zip(self._hints, values, strict=True)
        return [
            "r = twin()",
            *(f"r.{name} = {value}" for name, value in fields),
            *_nothing_kept(self._cls, "r"),
            "turn(r, cls)",
            "return r",
        ]

    def _check(self, hint: Any, value: str) -> str:
        """Return a condition for a value that stands as it is; "" for any other."""
        inner = optional_inner(hint)
        origin = typing.get_origin(hint)
        if inner is not None:
            check = self._check(inner, value)
            return check and f"({value} is None or {check})"
        if hint is Any:
            return "True"
        if origin is typing.Literal:
            return f"{value} in {self._named(frozenset(typing.get_args(hint)))}"
        if origin is dict and typing.get_args(hint)[1] is Any:
            return f"{value}.__class__ is dict"
        return f"{value}.__class__ is {_SCALARS[hint]}" if hint in _SCALARS else ""

    def _read(self, hint: Any, value: str) -> str:
        inner = optional_inner(hint)
        if inner is not None:
            return f"(None if {value} is None else {self._read(inner, value)})"
        return f"{self._named(self._reader(hint))}({value})"

    def _reader(self, hint: Any) -> Callable[[Any], Any]:
        if is_record(hint):
            return code_of(hint).read
        is_tuple = is_list(hint)
        inner = typing.get_args(hint)[0 if is_tuple else 1]
        check = self._check(inner, "v")
        kind, items = ("list", "value") if is_tuple else ("dict", "value.values()")
        lines = [f"if value.__class__ is not {kind}:", " raise Unfit"]
        if check:
            whole = "tuple(value)" if is_tuple else "dict(value)"
            lines += [f"for v in {items}:", f" if not {check}:", "  raise Unfit"]
        elif is_tuple:
            whole = f"tuple([{self._read(inner, 'v')} for v in value])"
        else:
            whole = f"{{k: {self._read(inner, 'v')} for k, v in value.items()}}"
        return self._function("value", [*lines, f"return {whole}"])

    def _plain_object(self, hints: dict[str, Any], reading: str) -> list[str]:
        members = [
            f"{name!r}: {self._plain(hint, f'r.{name}', reading)}"
            for name, hint in hints.items()
        ]
        return [f"return {{{', '.join(members)}}}"]

    def _plain(self, hint: Any, value: str, reading: str) -> str:
        """Return what makes a value plain JSON; only records and tuples change."""
        inner = optional_inner(hint)
        if inner is not None:
            plain = self._plain(inner, value, reading)
            return (
                value if plain == value else f"(None if {value} is None else {plain})"
            )
        if is_record(hint):
            plain = self._named(getattr(code_of(hint), f"{reading}_payload"))
            return f"{plain}({value})"
        if not is_list(hint):
            return value
        item = f"{value}_".replace("r.", "")
        plain = self._plain(typing.get_args(hint)[0], item, reading)
        return f"list({value})" if plain == item else f"[{plain} for {item} in {value}]"

    def _text_object(self, hints: dict[str, Any], reading: str) -> list[str]:
        members = [
            f"{quoted(name)}:{{{self._text(hints[name], f'r.{name}', reading)}}}"
            for name in sorted(hints)
        ]
        text = f"f'''{{{{{','.join(members)}}}}}'''"
        slot = getattr(self._cls, KEPT_TEXT, None)
        if slot is None or reading != "identity":
            return [f"return {text}"]
        return [
            "try:",
            f" kept = r.{KEPT_TEXT}",
            "except AttributeError:",
            " kept = None",  # A copy by `copy` or `pickle` has its fields alone.
            "if kept is None:",
            f" kept = {text}",
            f" {self._named(slot.__set__)}(r, kept)",
            "return kept",
        ]

    def _text(self, hint: Any, value: str, reading: str) -> str:
        """Return what writes a value as canonical JSON."""
        inner = optional_inner(hint)
        if inner is not None:
            text = self._text(inner, value, reading)
            return f"('null' if {value} is None else {text})"
        if hint is str or typing.get_origin(hint) is typing.Literal:
            return f"quote({value})"
        if hint is int:
            return (
                f"({value}.__repr__() if {value}.__class__ is int else encode({value}))"
            )
        if hint is bool:
            text = f"'false' if {value} is False else encode({value})"
            return f"('true' if {value} is True else {text})"
        if is_record(hint):
            text = self._named(getattr(code_of(hint), f"{reading}_text"))
            return f"{text}({value})"
        if hint is Any:
            return f"(quote({value}) if {value}.__class__ is str else encode({value}))"
        if not is_list(hint):
            return f"encode({value})"
        text = self._item_text(typing.get_args(hint)[0], reading)
        return f"""('[' + ','.join(map({text}, {value})) + ']' if {value} else '[]')"""

    def _item_text(self, hint: Any, reading: str) -> str:
        """Return the name of what writes one value."""
        if hint is str:
            return "quote"
        if is_record(hint):
            return self._named(getattr(code_of(hint), f"{reading}_text"))
        text = self._text(hint, "v", reading)
        return self._named(self._function("v", [f"return {text}"]))


def _fields(cls: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)


def filling(cls: type) -> Fill | None:
    """Return an `__init__` for a frozen slotted dataclass; None to keep its own.

    A frozen dataclass sets each field past its own lock, which costs more than the
    rest of a record's life. Here an instance is filled in while it is one of a twin
    class that has the same slots and no lock, and is then turned into a record.
    """
    fields = _fields(cls)
    plain = all(
        field.init
        and not field.kw_only
        and field.default is field.default_factory is dataclasses.MISSING
        for field in fields
    )
    if not plain or not fields:
        return None
    names = [field.name for field in fields]
    twin = _TWINS[cls] = type(cls.__name__, cls.__bases__, {"__slots__": tuple(names)})
    lines = [
        f"def __init__(self, {', '.join(names)}):",
        "turn(self, twin)",
        *(f"self.{name} = {name}" for name in names),
        *_nothing_kept(cls, "self"),
        "turn(self, cls)",
    ]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    space = {"turn": _turn, "twin": twin, "cls": cls}
    exec("\n ".join(lines), space)  # noqa: S102 - written from field names alone
    fill: Fill = space["__init__"]
    return fill


def _nothing_kept(cls: type, value: str) -> list[str]:
    return [f"{value}.{KEPT_TEXT} = None"] if hasattr(cls, KEPT_TEXT) else []


def annotations_of(cls: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record class with their annotations."""
    hints = typing.get_type_hints(cls)
    for field in _fields(cls):
        yield field.name, hints[field.name]


def rules_of(cls: Any) -> dict[str, FieldRule]:
    """Return the rules of those fields of a record class that have one."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {
        field.name: rule
        for field in _fields(cls)
        for rule in getattr(hints[field.name], "__metadata__", ())
        if isinstance(rule, FieldRule)
    }
