"""Where the records of a key stand: a compact open-addressing table.

Keys are content hashes; the table keeps their first 64 bits. Records with equal
prefixes form one chain, newest first. Two keys can share a prefix, so a chain is a
list of *candidates*: who needs certainty reads the record and compares the key.
A record costs 16 bytes here and its key 6 to 12 more, whatever the payload.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from typing import Final

_FIRST_SLOTS: Final = 1024
_TYPE_BITS: Final = 3
_TYPE_MASK: Final = (1 << _TYPE_BITS) - 1
MAX_NUMBER: Final = (1 << 29) - 1
"""Largest record number (attempt) that the table can hold."""


class KeyIndex:
    """Chains of record numbers (from 0, in file order) by key."""

    def __init__(self) -> None:
        self._prefixes = array("Q")
        self._previous = array("I")
        self._tags = array("I")
        self._slots = array("I", bytes(4 * _FIRST_SLOTS))
        self._keys = 0

    def __len__(self) -> int:
        return len(self._prefixes)

    def add(self, key: str, record_type: int, number: int) -> None:
        """Enter the next record; type below 8, number up to `MAX_NUMBER`."""
        prefix = _prefix(key)
        slot = self._slot(self._slots, prefix)
        newest = self._slots[slot]
        self._prefixes.append(prefix)
        self._previous.append(newest)
        self._tags.append(number << _TYPE_BITS | record_type)
        self._slots[slot] = len(self._prefixes)
        if not newest:
            self._keys += 1
            if self._keys * 3 > len(self._slots) * 2:
                self._grow()

    def chain(self, key: str) -> Iterator[int]:
        """Yield the records whose key begins like this one, newest first."""
        return self._walk(self._slots[self._slot(self._slots, _prefix(key))])

    def find(
        self, key: str, types: Collection[int], number: int | None
    ) -> Iterator[int]:
        """Yield the records of a chain with one of these types and this number.

        No type stands for any, and so does None. The newest comes first.
        """
        newest = self._slots[self._slot(self._slots, _prefix(key))]
        while newest:
            newest -= 1
            tag = self._tags[newest]
            if (not types or tag & _TYPE_MASK in types) and (
                number is None or tag >> _TYPE_BITS == number
            ):
                yield newest
            newest = self._previous[newest]

    def types_of(self, key: str) -> list[int]:
        """Return the types of the records of a chain, newest first."""
        types = []
        newest = self._slots[self._slot(self._slots, _prefix(key))]
        while newest:
            newest -= 1
            types.append(self._tags[newest] & _TYPE_MASK)
            newest = self._previous[newest]
        return types

    def chains(self) -> Iterator[Iterator[int]]:
        """Yield every chain, in no useful order."""
        for newest in self._slots:
            if newest:
                yield self._walk(newest)

    def record_type(self, record: int) -> int:
        """Return the type that a record was entered with."""
        return self._tags[record] & _TYPE_MASK

    def number(self, record: int) -> int:
        """Return the number that a record was entered with."""
        return self._tags[record] >> _TYPE_BITS

    def _walk(self, newest: int) -> Iterator[int]:
        while newest:
            yield newest - 1
            newest = self._previous[newest - 1]

    def _slot(self, slots: array[int], prefix: int) -> int:
        mask = len(slots) - 1
        slot = prefix & mask
        prefixes = self._prefixes
        while (entry := slots[slot]) and prefixes[entry - 1] != prefix:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        larger = array("I", bytes(8 * len(self._slots)))
        for entry in self._slots:
            if entry:
                larger[self._slot(larger, self._prefixes[entry - 1])] = entry
        self._slots = larger


def _prefix(key: str) -> int:
    return int(key[7:23], 16)
