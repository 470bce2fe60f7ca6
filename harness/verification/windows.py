"""Files as stretches of files: a run folder and a bundle, read alike.

A member of a bundle is a window of the bundle file, a file of a run folder a window
from its beginning to its end. Whoever verifies sees windows by file name and cannot
tell the two apart.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from harness.evidence.disk import machine_refusals
from harness.regular_file import open_regular_file

READ_SIZE: Final = 1 << 20
_BUFFER_SIZE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a file."""

    path: Path
    begin: int
    size_bytes: int

    @classmethod
    def of_file(cls, path: Path) -> Window:
        """Return a whole file; raise EvidenceError if it cannot be looked at."""
        with (
            machine_refusals("look at a file", path),
            open_regular_file(path) as stream,
        ):
            return cls(path, 0, os.fstat(stream.fileno()).st_size)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the stretch; reading ends where it ends."""
        with (
            machine_refusals("read a file", self.path),
            open_regular_file(self.path, 0) as raw,
        ):
            stretch = _Stretch(raw, self.begin, self.size_bytes)
            yield io.BufferedReader(stretch, _BUFFER_SIZE)

    def read(self) -> bytes:
        """Return all bytes of the stretch."""
        with self.open() as stream:
            return stream.read()

    def content_hash(self) -> str:
        """Return the content hash, reading in pieces."""
        digest = hashlib.sha256()
        with self.open() as stream:
            while piece := stream.read(READ_SIZE):
                digest.update(piece)
        return "sha256:" + digest.hexdigest()


class _Stretch(io.RawIOBase):
    """A raw stream over one stretch of an open file."""

    def __init__(self, raw: BinaryIO, begin: int, size_bytes: int) -> None:
        super().__init__()
        self._raw = raw
        self._begin = self._at = begin
        self._end = begin + size_bytes

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as the stretch goes."""
        view = memoryview(buffer)[: self._end - self._at]
        count = os.preadv(self._raw.fileno(), [view], self._at)
        self._at += count
        return count

    def seekable(self) -> bool:
        """Tell that it can be read from any place."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; offsets count from where the stretch begins."""
        origin = {
            io.SEEK_SET: self._begin,
            io.SEEK_CUR: self._at,
            io.SEEK_END: self._end,
        }[whence]
        self._at = min(max(origin + offset, self._begin), self._end)
        return self._at - self._begin
