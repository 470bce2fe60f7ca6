"""When two values of a record are equal: the comparer of JSON records.

Booleans equal only booleans, null only null. Numbers compare by value with no
tolerance, so 1 equals 1.0 and -0 equals 0, and big integers compare exactly; NaN
equals nothing. Strings compare after NFC and a Unicode trim. Objects have equal key
sets, keys as they are. Arrays compare item by item, or as multisets where their own
schema node has a truthy `x-unordered`. That mark is followed through `properties` and
`items` alone. Other contracts have other comparers; this one is not to be shared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final
from unicodedata import normalize

from harness.canonical import Json

COMPARER_VERSION: Final = "json-record-equal-1"
UNORDERED: Final = "x-unordered"

_NUMBERS: Final = (int, float)
_Pairs = list[tuple[Json, Json, Json]]


def values_equal(left: Json, right: Json, node: Json = None) -> bool:
    """Compare two decoded values under the schema node of their place.

    A node that is no object (absent, or a boolean schema) marks nothing.
    """
    if not isinstance(left, dict | list):
        return _scalars_equal(left, right)
    pairs: _Pairs = [(left, right, node)]
    while pairs:
        left, right, node = pairs.pop()
        if not isinstance(left, dict | list):
            if not _scalars_equal(left, right):
                return False
        elif not _containers_equal(left, right, node, pairs):
            return False
    return True


def member_node(node: Json, name: str) -> Json:
    """Return the node under `properties` of a schema node, None where there is none."""
    properties = node.get("properties") if isinstance(node, dict) else None
    return properties.get(name) if isinstance(properties, dict) else None


def _scalars_equal(left: Json, right: Json) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and (
            left == right or _plain(left) == _plain(right)
        )
    if left is None or isinstance(left, bool):
        return left is right
    is_number = isinstance(right, _NUMBERS) and not isinstance(right, bool)
    return is_number and bool(left == right)


def _containers_equal(left: Json, right: Json, node: Json, pairs: _Pairs) -> bool:
    """Compare an object or array but for its members, which are added to `pairs`."""
    node = node if isinstance(node, dict) else {}
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        pairs += [(left[k], right[k], member_node(node, k)) for k in left]
        return True
    if not isinstance(right, list) or len(left) != len(right):
        return False
    items = node.get("items")
    if node.get(UNORDERED):
        return _same_multiset(left, right, items)
    pairs += [(one, two, items) for one, two in zip(left, right, strict=True)]
    return True


def _plain(text: str) -> str:
    return text.strip() if text.isascii() else normalize("NFC", text).strip()


def _same_multiset(left: list[Json], right: list[Json], items: Json) -> bool:
    if all(isinstance(value, str) for value in left):
        return all(isinstance(value, str) for value in right) and (
            sorted(map(_plain, left)) == sorted(map(_plain, right))
        )
    classes = _Classes()
    return Counter(classes.of(value, items) for value in left) == Counter(
        classes.of(value, items) for value in right
    )


class _Classes:
    """Numbers values so that two have one number exactly when they are equal.

    Members are numbered before what holds them, so a key of the table is flat however
    deep its value is, and matching two arrays of n items takes n steps, not n * n.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}

    def of(self, value: Json, node: Json) -> int:
        """Return the number of a value under its schema node."""
        done: list[int] = []
        waiting: list[tuple[Json, Json, bool]] = [(value, node, False)]
        while waiting:
            value, node, is_open = waiting.pop()
            members = _members(value, node)
            if members and not is_open:
                waiting.append((value, node, True))
                waiting += [(member, under, False) for member, under in members]
                continue
            cut = len(done) - len(members)
            below = done[cut:][::-1]
            del done[cut:]
            done.append(self._number(_key(value, node, below)))
        return done[0]

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _members(value: Json, node: Json) -> list[tuple[Json, Json]]:
    if isinstance(value, dict):
        return [(value[name], member_node(node, name)) for name in value]
    if isinstance(value, list):
        items = node.get("items") if isinstance(node, dict) else None
        return [(item, items) for item in value]
    return []


def _key(value: Json, node: Json, below: list[int]) -> tuple[object, ...]:
    if isinstance(value, dict):
        return ("object", *_sorted_members(value, below))
    if isinstance(value, list):
        if isinstance(node, dict) and node.get(UNORDERED):
            return ("bag", *sorted(below))
        return ("array", *below)
    if isinstance(value, str):
        return ("string", _plain(value))
    if value is None or isinstance(value, bool):
        return ("word", str(value))
    # An object of its own for NaN: it has no equal, not even itself.
    return ("number", value if value == value else object())  # noqa: PLR0124


def _sorted_members(value: dict[str, Json], below: list[int]) -> Iterator[object]:
    for name, number in sorted(zip(value, below, strict=True)):
        yield name
        yield number
