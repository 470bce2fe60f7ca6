"""Declared defaults, filled in recursively (spec 3.6).

A value may be described by several schema objects at once: the one that stands
there, the targets of its `$ref` and the members of its `allOf`. They are merged
before anything is filled in, the nearest default wins, and an inserted default is
itself filled; so filling twice changes nothing. Branches of `anyOf` and `oneOf`
insert nothing, because which branch is meant is not known.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from harness.canonical import Json
from harness.json_schema.references import target_of

Schema = dict[str, Json]


class DefaultFiller:
    """Fills one place of a document that several schema objects describe."""

    __slots__ = ("items", "properties")

    def __init__(self, root: Schema, schemas: Sequence[Schema]) -> None:
        parts = _parts(root, schemas)
        self.properties: dict[str, tuple[bool, Json, DefaultFiller | None]] = {}
        for name, members in _members(parts).items():
            filler = _useful(root, members)
            stated = [
                part["default"] for part in _parts(root, members) if "default" in part
            ]
            if stated or filler is not None:
                default = stated[0] if stated else None
                self.properties[name] = (bool(stated), default, filler)
        item_schemas = [part["items"] for part in parts if "items" in part]
        self.items = _useful(root, item_schemas)

    @property
    def defaulted(self) -> frozenset[str]:
        """Names of the properties that have a default here."""
        return frozenset(
            name for name, (has_default, _, _) in self.properties.items() if has_default
        )

    def fill(self, value: Json) -> Json:
        """Return the value with defaults; parts that change are copies."""
        if isinstance(value, dict) and self.properties:
            return self._fill_object(value)
        if isinstance(value, list) and self.items is not None:
            return [self.items.fill(item) for item in value]
        return value

    def _fill_object(self, value: dict[str, Json]) -> dict[str, Json]:
        filled = dict(value)
        for name, (has_default, default, filler) in self.properties.items():
            if name not in filled:
                if not has_default:
                    continue
                filled[name] = copy.deepcopy(default)
            if filler is not None:
                filled[name] = filler.fill(filled[name])
        return filled


def _parts(root: Schema, schemas: Sequence[Schema]) -> list[Schema]:
    """Return all that describe the place, each once, the nearest first."""
    found: dict[int, Schema] = {}

    def gather(schema: Schema) -> None:
        if id(schema) not in found:
            found[id(schema)] = schema
            for part in (*target_of(root, schema), *schema.get("allOf", ())):
                gather(part)

    for schema in schemas:
        gather(schema)
    return list(found.values())


def _members(parts: Sequence[Schema]) -> dict[str, list[Schema]]:
    members: dict[str, list[Schema]] = {}
    for part in parts:
        for name, schema in part.get("properties", {}).items():
            members.setdefault(name, []).append(schema)
    return members


def _useful(root: Schema, schemas: Sequence[Schema]) -> DefaultFiller | None:
    if not schemas:
        return None
    filler = DefaultFiller(root, schemas)
    return filler if filler.properties or filler.items is not None else None
