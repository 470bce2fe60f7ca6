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
    made_at: float
    """On the monotonic clock, in seconds."""
    traces: Traces | None
    """What could be read of it beforehand; None where later use might not show."""

    async def give_back(self, *, may_be_lent: bool) -> None:
        """Keep the folder for the next worker, or remove it with all that is in it.

        `may_be_lent` says that no process can still be using it.
        """
        await self.lender.take_back(self, may_be_lent=may_be_lent)


class WorkerFolders:
    """The folders below one host's scratch folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._idle: list[tuple[Path, float]] = []
        self._made = 0

    def lend(self) -> LentFolder:
        """Return an empty private folder that nobody else has."""
        path, made_at = self._idle.pop() if self._idle else self._make()
        is_settled = time.monotonic() - made_at > _STILL_S
        return LentFolder(path, self, made_at, _traces(path) if is_settled else None)

    async def take_back(self, folder: LentFolder, *, may_be_lent: bool) -> None:
        """Keep the folder if nothing was done in it, or remove it."""
        if (
            may_be_lent
            and folder.traces is not None
            and folder.traces == _traces(folder.path)
        ):
            self._idle.append((folder.path, folder.made_at))
            return
        await folders.remove(folder.path)
        if may_be_lent:
            # A host that just died has its scratch folder removed under our hands.
            with suppress(OSError):
                self._idle.append(self._make())

    def _make(self) -> tuple[Path, float]:
        self._made += 1
        return folders.make(self._root, f"worker-{self._made}"), time.monotonic()


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
