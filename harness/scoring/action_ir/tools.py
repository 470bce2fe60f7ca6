"""The tools of one row: names, argument schemas, what may be left out or added.

A wrong definition is a programming error of the caller and raises ToolDefinitionError;
it never becomes a score. Names are non-empty and in NFC. A tool has side effects
unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from types import MappingProxyType
from typing import Any, Final
from unicodedata import is_normalized

from harness.canonical import Json, canonical_json
from harness.scoring.action_ir.decode import nfc

JSON_TYPES: Final[Mapping[str, tuple[type, ...]]] = MappingProxyType(
    {
        "null": (type(None),),
        "boolean": (bool,),
        "integer": (int,),
        "number": (int, float),
        "string": (str,),
        "array": (list,),
        "object": (dict,),
    }
)
"""Python types that a value of each declared type may have, exactly."""
_NONE: Final[Mapping[str, ValueSchema]] = MappingProxyType({})


class ToolDefinitionError(ValueError):
    """A tool or value schema contradicts the tool model."""


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """What one value may be."""

    type: str
    items: ValueSchema | None = None
    """Schema of every member; arrays have one, nothing else has."""
    set_semantics: bool = False
    """Whether order and repetition of an array's members mean nothing."""
    properties: Mapping[str, ValueSchema] = field(default_factory=lambda: _NONE)
    required: frozenset[str] = frozenset()
    additional_properties: bool = False
    enum: tuple[Json, ...] | None = None
    """Scalars that are allowed; an empty one allows nothing."""
    enum_texts: frozenset[str] | None = field(default=None, init=False, repr=False)
    """Canonical texts of the enum's members, made from it."""

    def __post_init__(self) -> None:
        if not isinstance(self.type, str) or self.type not in JSON_TYPES:
            raise ToolDefinitionError(f"unknown type {self.type!r}")
        _check_flag("set_semantics", self.set_semantics)
        _check_flag("additional_properties", self.additional_properties)
        if (self.type == "array") != (self.items is not None):
            raise ToolDefinitionError(
                f"{self.type}: items belong to arrays, all of them"
            )
        if self.set_semantics and self.type != "array":
            raise ToolDefinitionError(f"{self.type}: set_semantics is for arrays")
        named = self.properties or self.required or self.additional_properties
        if named and self.type != "object":
            raise ToolDefinitionError(f"{self.type}: properties are for objects")
        _check_names("property", self.properties)
        _check_required(self.required, self.properties)
        if self.enum is not None:
            object.__setattr__(self, "enum_texts", _enum_texts(self.type, self.enum))


@dataclass(frozen=True, slots=True)
class Tool:
    """One callable tool."""

    name: str
    arguments: Mapping[str, ValueSchema] = field(default_factory=lambda: _NONE)
    required: frozenset[str] = frozenset()
    additional_arguments: bool = False
    side_effecting: bool = True

    def __post_init__(self) -> None:
        _check_names("tool", (self.name,))
        _check_names("argument", self.arguments)
        _check_required(self.required, self.arguments)
        _check_flag("additional_arguments", self.additional_arguments)
        _check_flag("side_effecting", self.side_effecting)


class ToolSet(Mapping[str, Tool]):
    """The tools that a row declares, by name."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ToolDefinitionError(f"tool {tool.name!r} is declared twice")
            self._tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def tool_from_json(definition: Json) -> Tool:
    """Build a tool from its JSON form; raise ToolDefinitionError."""
    given = _fields_of(definition, Tool)
    arguments = _mapping_of("arguments", given.get("arguments", {}))
    given["arguments"] = {
        name: value_schema_from_json(schema) for name, schema in arguments.items()
    }
    return Tool(**given)


def value_schema_from_json(definition: Json) -> ValueSchema:
    """Build a value schema from its JSON form; raise ToolDefinitionError."""
    given = _fields_of(definition, ValueSchema)
    if given.get("items") is not None:
        given["items"] = value_schema_from_json(given["items"])
    properties = _mapping_of("properties", given.get("properties", {}))
    given["properties"] = {
        name: value_schema_from_json(schema) for name, schema in properties.items()
    }
    if given.get("enum") is not None:
        given["enum"] = tuple(_list_of("enum", given["enum"]))
    return ValueSchema(**given)


def _fields_of(definition: Json, model: type[Any]) -> dict[str, Any]:
    given = _mapping_of(model.__name__, definition)
    known = [each for each in fields(model) if each.init]
    unknown = given.keys() - {each.name for each in known}
    if unknown:
        raise ToolDefinitionError(f"{model.__name__} has no {sorted(unknown)}")
    if known[0].name not in given:
        raise ToolDefinitionError(f"{model.__name__} without {known[0].name}")
    if "required" in given:
        required = _list_of("required", given["required"])
        if not all(isinstance(name, str) for name in required):
            raise ToolDefinitionError("required holds names only")
        given["required"] = frozenset(required)
    return given


def _mapping_of(what: str, value: Json) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ToolDefinitionError(f"{what} is no object")
    return dict(value)


def _list_of(what: str, value: Json) -> list[Any]:
    if not isinstance(value, list):
        raise ToolDefinitionError(f"{what} is no array")
    return value


def _check_names(what: str, names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str) or not name or not is_normalized("NFC", name):
            raise ToolDefinitionError(f"{what} name {name!r} is empty or not in NFC")


def _check_required(required: frozenset[str], declared: Mapping[str, object]) -> None:
    undeclared = required - declared.keys()
    if undeclared:
        raise ToolDefinitionError(f"required but not declared: {sorted(undeclared)}")


def _check_flag(what: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ToolDefinitionError(f"{what} is {value!r}, not true or false")


def _enum_texts(kind: str, members: tuple[Json, ...]) -> frozenset[str]:
    texts: set[str] = set()
    for member in members:
        if type(member) not in JSON_TYPES[kind] or isinstance(member, list | dict):
            raise ToolDefinitionError(f"{kind}: enum member {member!r} is none")
        text = canonical_json(_enum_member(kind, member))
        if text in texts:
            raise ToolDefinitionError(f"{kind}: enum member {member!r} repeats")
        texts.add(text)
    return frozenset(texts)


def _enum_member(kind: str, member: Json) -> Json:
    if isinstance(member, str):
        return nfc(member)
    if kind == "number":
        try:
            number = float(member)
        except OverflowError:
            number = float("inf")
        if not isfinite(number):
            raise ToolDefinitionError(f"enum member {member!r} is no finite double")
        return number
    return member
