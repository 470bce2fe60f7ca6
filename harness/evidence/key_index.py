"""Where the records of a key stand: a compact open-addressing table.

Keys are content hashes; the table keeps their first 64 bits. Records with equal
prefixes form one chain, newest first. Two keys can share a prefix, so a chain is a
list of *candidates*: who needs certainty reads the record and compares the key.
A record costs 8 bytes here and its key 18 to 24, whatever the payload.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

_FIRST_SLOTS: Final = 1024
_TYPE_BITS: Final = 3
_TYPE_MASK: Final = (1 << _TYPE_BITS) - 1
MAX_NUMBER: Final = (1 << 29) - 1
"""Largest record number (attempt) that the table can hold."""


class KeyIndex:
    """Chains of record numbers (from 0, in file order) by key."""

    def __init__(self) -> None:
        self._previous = array("I")
        """For each record, one more than the record before it in its chain."""
        self._tags = array("I")
        self._prefixes = array("Q", [0])
        self._newest = array("I", [0])
        """For each chain, from 1, one more than its newest record; chain 0 is empty."""
        self._slots = array("I", bytes(4 * _FIRST_SLOTS))
        """The chain that stands in each; 0 where none does."""
        self._asked = ""
        """The key that was asked for last: a record is checked before it is entered,
        and what follows it often has its key."""
        self._asked_chain = 0
        self._asked_slot = 0

    def __len__(self) -> int:
        return len(self._tags)

    def add(self, key: str, record_type: int, number: int) -> None:
        """Enter the next record; type below 8, number up to `MAX_NUMBER`."""
        chain = self._chain(key) or self._begin(key)
        self._previous.append(self._newest[chain])
        self._tags.append(number << _TYPE_BITS | record_type)
        self._newest[chain] = len(self._tags)

    def chain(self, key: str) -> Iterator[int]:
        """Yield the records whose key begins like this one, newest first."""
        return self._walk(self._newest[self._chain(key)])

    def find(
        self, key: str, types: Collection[int], number: int | None
    ) -> Iterator[int]:
        """Yield the records of a chain with one of these types and this number.

        No type stands for any, and so does None. The newest comes first.
        """
        newest = self._newest[self._chain(key)]
        while newest:
            newest -= 1
            tag = self._tags[newest]
            if (not types or tag & _TYPE_MASK in types) and (
                number is None or tag >> _TYPE_BITS == number
            ):
                yield newest
            newest = self._previous[newest]

    def types_of(self, key: str) -> list[int]:
        """Return the types of the records of a chain, the newest first."""
        types = []
        newest = self._newest[self._chain(key)]
        while newest:
            types.append(self._tags[newest - 1] & _TYPE_MASK)
            newest = self._previous[newest - 1]
        return types

    def chains(self) -> Iterator[Iterator[int]]:
        """Yield every chain, in the order of their beginnings."""
        return map(self._walk, islice(self._newest, 1, None))

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

    def _chain(self, key: str) -> int:
        """Return the chain of a key, 0 where it has none."""
        if key != self._asked:
            prefix = _prefix(key)
            slots, prefixes = self._slots, self._prefixes
            mask = len(slots) - 1
            slot = prefix & mask
            while (chain := slots[slot]) and prefixes[chain] != prefix:
                slot = (slot + 1) & mask
            self._asked, self._asked_chain, self._asked_slot = key, chain, slot
        return self._asked_chain

    def _begin(self, key: str) -> int:
        """Begin the chain of the key that was asked for last."""
        chain = len(self._newest)
        self._prefixes.append(_prefix(key))
        self._newest.append(0)
        self._slots[self._asked_slot] = self._asked_chain = chain
        if chain * 3 > len(self._slots) * 2:
            self._grow()
        return chain

    def _grow(self) -> None:
        mask = 2 * len(self._slots) - 1
        self._slots = slots = array("I", bytes(8 * len(self._slots)))
        for chain in range(1, len(self._prefixes)):
            slot = self._prefixes[chain] & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = chain


def _prefix(key: str) -> int:
    return int(key[7:23], 16)
