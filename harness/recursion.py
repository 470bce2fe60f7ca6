"""How deep values may be followed, whoever calls.

The interpreter's limit counts the caller's frames too, so that one answer could have
two verdicts. Parser and schema have limits of their own that come first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from harness.canonical import Json

RECURSION_LIMIT: Final = 8000
"""Frames; far from where the C stack of a process ends."""
_SHALLOW: Final = 100
"""Brackets that any caller has room for."""

Parsed = TypeVar("Parsed")


def parse_with_room(parse: Callable[[str], Parsed], text: str) -> Parsed:
    """Return what the parser of JSON makes of a text, however deep its caller is."""
    if text.count("[") + text.count("{") <= _SHALLOW:
        return parse(text)
    with room_to_recurse():
        return parse(text)


@contextmanager
def room_to_recurse() -> Iterator[None]:
    """Raise the interpreter's limit for what is done inside."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def is_nested_deeper(value: Json, levels: int) -> bool:
    """Tell whether arrays and objects stand more than so many levels in each other."""
    waiting = [(value, 1)]
    while waiting:
        item, level = waiting.pop()
        members = item.values() if isinstance(item, dict) else item
        if isinstance(item, dict | list):
            if level > levels:
                return True
            waiting += [(member, level + 1) for member in members]
    return False
