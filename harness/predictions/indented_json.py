"""JSON text with an indent of two, as `json.dumps(value, indent=2)` writes it.

The library's encoder does this in Python one token at a time; here a leaf is one call
and a document may hold lists that are longer than memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from harness.canonical import Json

_leaf: Final = json.JSONEncoder().encode


def indented(value: Json, columns: int = 0) -> str:
    """Return the text of a value whose first line begins at `columns` spaces.

    Object keys are strings.
    """
    margin = "\n" + " " * (columns + 2)
    if isinstance(value, dict) and value:
        members = [
            f"{_leaf(name)}: {indented(member, columns + 2)}"
            for name, member in value.items()
        ]
        return f"{{{margin}{f',{margin}'.join(members)}{margin[:-2]}}}"
    if isinstance(value, list) and value:
        items = [indented(item, columns + 2) for item in value]
        return f"[{margin}{f',{margin}'.join(items)}{margin[:-2]}]"
    return _leaf(value)


def document(
    head: Mapping[str, Json], lists: Mapping[str, Iterable[Json]]
) -> Iterator[str]:
    """Yield the text of one object in pieces: plain members, then long lists."""
    opening = "{"
    for name, value in head.items():
        yield f"{opening}\n  {_leaf(name)}: {indented(value, 2)}"
        opening = ","
    for name, rows in lists.items():
        yield f"{opening}\n  {_leaf(name)}: ["
        opening = ","
        separator = ""
        for row in rows:
            yield f"{separator}\n    {indented(row, 4)}"
            separator = ","
        yield "\n  ]" if separator else "]"
    yield "{}" if opening == "{" else "\n}"
