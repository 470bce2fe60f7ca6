"""The folders that workers may write: lent to one at a time, and again if left alone.

Making and removing a folder can cost a worker's client more than all it says to the
worker, and waits for the disk. Most workers never touch theirs. One is lent again only
if its file system shows no trace of use at all: the change time, which no process can
set, with everything else that can be read of the folder itself. Every other folder is
removed, and a new one takes its place.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.oracle import folders

_STILL_S: Final = 0.1
"""Longest time in which two changes of a folder may get the same change time."""
_SECOND_NS: Final = 1_000_000_000

Traces = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class LentFolder:
    """A worker's own folder."""

    path: Path
    lender: WorkerFolders
    traces: Traces | None
    """What could be read of it beforehand; None where later use might not show."""

    async def give_back(self, *, may_be_lent: bool) -> None:
        """Keep the folder for the next worker, or remove it with all that is in it.

        `may_be_lent` says that no process can still be using it.
        """
        await self.lender.take_back(self, may_be_lent=may_be_lent)


class WorkerFolders:
    """The folders below one host's scratch folder; no more spare ones than are lent."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._spare: deque[tuple[Path, float]] = deque()
        """With the moment from which on their use would show, the earliest first."""
        self._made = 0
        self._lent = 0

    def lend(self) -> LentFolder:
        """Return an empty private folder that nobody else has."""
        self._lent += 1
        if self._spare and self._spare[0][1] <= time.monotonic():
            path, _ = self._spare.popleft()
            return LentFolder(path, self, _traces(path))
        return LentFolder(self._make(), self, None)

    async def take_back(self, folder: LentFolder, *, may_be_lent: bool) -> None:
        """Keep the folder if nothing was done in it, or remove it."""
        self._lent -= 1
        is_untouched = folder.traces is not None and folder.traces == _traces(
            folder.path
        )
        if may_be_lent and is_untouched:
            self._spare.appendleft((folder.path, 0.0))
            return
        await folders.remove(folder.path)
        if may_be_lent and len(self._spare) <= self._lent:
            # A host that just died has its scratch folder removed under our hands.
            with suppress(OSError):
                self._spare.append((self._make(), time.monotonic() + _STILL_S))

    def _make(self) -> Path:
        self._made += 1
        return folders.make(self._root, f"worker-{self._made}")


def _traces(path: Path) -> Traces | None:
    """Return what can be read of a folder; None if its times are in whole seconds."""
    try:
        found = os.lstat(path)
        attributes = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return None
    if found.st_ctime_ns % _SECOND_NS == 0:
        return None
    return (
        *(found.st_dev, found.st_ino, found.st_mode, found.st_nlink, found.st_size),
        *(found.st_uid, found.st_gid),
        *(found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns),
        *attributes,
    )
