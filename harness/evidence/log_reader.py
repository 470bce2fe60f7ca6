"""The reading half of a log: an index over records that were verified once.

A log is read through a window of a file: the whole file, or a stretch of a bundle.
Each line is verified when it is first met and again when it is read back. Memory is
at most about 40 bytes a record, 25 where three have one key: its offset, its place in
the key index, whether it was used; nothing of the payload.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from harness.evidence.disk import machine_refusal, machine_refusals
from harness.evidence.key_index import KeyIndex
from harness.evidence.log_line import Entry, LineError, LogFormat, damage, decode_line
from harness.evidence.merkle import MerkleTree

_READ_SIZE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class TornTail:
    """An unterminated last line that was found."""

    offset: int
    """Where it began, in bytes."""
    size_bytes: int
    moved_to: str | None
    """Name of the file that keeps it; None when the log was opened read-only."""


class RecordUse(NamedTuple):
    """How many records of one type were read back, and how many there are."""

    used: int
    present: int


class LogReader:
    """Records of a log by number and by key.

    `entry` numbers are record numbers from 0; a record's `sequence` is one more.
    """

    def __init__(
        self, path: Path, log: LogFormat, descriptor: int, begin: int = 0
    ) -> None:
        self.path = path
        self.format = log
        self.torn: TornTail | None = None
        self.index = KeyIndex()
        self._descriptor = descriptor
        self._begin = begin
        """Where the log begins in its file."""
        self._offsets = array("Q")
        self._used = bytearray()
        """For each record 1 once it was read back."""
        self._end = 0
        self._merkle = MerkleTree()

    def _enter(
        self, line: bytes, record_type: str, key: str, number: int | None, digest: bytes
    ) -> None:
        kind = self.format.record_types.index(record_type)
        self._offsets.append(self._end)
        self._used.append(0)
        self.index.add(key, kind, number or 0)
        self._merkle.add(digest)
        self._end += len(line)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size_bytes(self) -> int:
        """Size of the whole records, in bytes."""
        return self._end

    @property
    def merkle_root(self) -> str:
        """The root over all records in file order (`harness.evidence.merkle`)."""
        return self._merkle.root()

    @property
    def content_hash(self) -> str:
        """The hash of the file's whole records, read again to where they end."""
        digest = sha256()
        offset = 0
        with machine_refusals("read a log", self.path):
            while offset < self._end:
                size = min(_READ_SIZE, self._end - offset)
                piece = os.pread(self._descriptor, size, self._begin + offset)
                if not piece:
                    break
                digest.update(piece)
                offset += len(piece)
        return "sha256:" + digest.hexdigest()

    def entry(self, record: int) -> Entry:
        """Read one record back and verify it; raise EvidenceError."""
        offset = self._offsets[record]
        last = record + 1 == len(self._offsets)
        size = (self._end if last else self._offsets[record + 1]) - offset
        try:
            line = os.pread(self._descriptor, size, self._begin + offset)
        except OSError as error:
            raise machine_refusal("read a log", self.path, error) from error
        if len(line) != size:
            reason = "the file shrank while it was open"
            raise damage(self.format, record + 1, offset, reason)
        self._used[record] = 1
        return self._decode(line[:-1], record, offset)

    def _decode(self, line: bytes, record: int, offset: int) -> Entry:
        try:
            return decode_line(self.format, line, record + 1, offset)
        except LineError as error:
            raise damage(self.format, record + 1, offset, str(error)) from None

    def entries_of(
        self, key: str, *record_types: str, number: int | None = None
    ) -> Iterator[Entry]:
        """Yield the records of a key, newest first; only of these types if given."""
        kinds = [self.format.record_types.index(name) for name in record_types]
        for record in self.index.find(key, kinds, number):
            entry = self.entry(record)
            if entry.key == key:
                yield entry

    def entries(self) -> Iterator[Entry]:
        """Yield all records written so far, in order, verified again."""
        for record in range(len(self._offsets)):
            yield self.entry(record)

    def note_use(self, record: int) -> None:
        """Count a record as read back whose content is known since opening."""
        self._used[record] = 1

    def forget_use(self) -> None:
        """Count use from here on."""
        self._used = bytearray(len(self._used))

    def use(self) -> dict[str, RecordUse]:
        """Return how many records of each type were read back, and of how many."""
        types = self.format.record_types
        used, present = [0] * len(types), [0] * len(types)
        for record, flag in enumerate(self._used):
            kind = self.index.record_type(record)
            present[kind] += 1
            used[kind] += flag
        return {
            name: RecordUse(used[kind], present[kind])
            for kind, name in enumerate(types)
        }

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _forget(self) -> None:
        """Give the memory of the index back, whoever still holds the closed log."""
        self.index = KeyIndex()
        self._offsets = array("Q")
