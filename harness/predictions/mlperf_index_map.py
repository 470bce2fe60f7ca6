"""The map from samples to data set rows in a report folder, of which only keys count.

The original demands the map and looks its data set up in it, then makes no use of
what it finds. A map has one entry a turn, so its values are passed over unread.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from harness.regular_file import read_regular_file

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]:]', re.DOTALL)


class IndexMapError(ValueError):
    """The file is no JSON object."""


def index_map_keys(path: Path) -> list[str]:
    """Return the names of the data sets in a map; raise IndexMapError."""
    try:
        text = read_regular_file(path).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise IndexMapError(str(error)) from None
    if not text.startswith("{"):
        raise IndexMapError("no object")
    keys: list[str] = []
    depth = 0
    before = ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        elif mark == ":" and depth == 1:
            keys.append(_name(before))
        before = mark
    if depth:
        raise IndexMapError("brackets that do not close")
    return keys


def _name(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        raise IndexMapError(f"a key that is no text: {token!r}") from None
