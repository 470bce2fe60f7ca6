"""Scratch folders of hosts and workers: made before the fork, gone after the kill.

The folder of an oracle is locked for as long as its evaluator lives, so that what a
killed evaluator left behind can be told from what is in use and is removed by the
next one. A lock needs no process id, which another container would not know.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from oracle_workers.folders import remove_tree

PREFIX: Final = "fairtrial-oracle-"
_SETTLED_S: Final = 60.0
"""A younger folder may be one that is not locked yet."""


class Root:
    """The private folder of one oracle, locked until it is removed."""

    def __init__(self, parent: Path | None) -> None:
        """Make the folder, and remove those of evaluators that are gone."""
        place = Path(tempfile.gettempdir() if parent is None else parent)
        remove_abandoned(place)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place)).resolve()
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    async def remove(self) -> None:
        """Remove the folder with all that is in it; safe to repeat."""
        await remove(self.path)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def remove_abandoned(place: Path) -> None:
    """Remove the folders of killed evaluators of this user; refusals are passed over.

    Never one that is locked, that is another user's, or that was touched just now.
    """
    for path in _candidates(place):
        with suppress(OSError):
            _remove_unlocked(path)


def _candidates(place: Path) -> Iterator[str]:
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                yield entry.path


def _remove_unlocked(path: str) -> None:
    # Opened without following, so that a link in a shared folder leads nowhere.
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        age_s = time.time() - max(found.st_mtime, found.st_ctime)
        if found.st_uid != os.geteuid() or age_s < _SETTLED_S:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    finally:
        os.close(descriptor)


def make(root: Path, name: str) -> Path:
    """Make a private folder in it, for a host or for a worker."""
    folder = root / name
    folder.mkdir(mode=0o700)
    return folder


async def remove(folder: Path) -> None:
    """Remove a folder with all that pack code left in it."""
    try:
        os.rmdir(folder)  # noqa: PTH106 - usually empty, and gone in microseconds
    except FileNotFoundError:
        return
    except OSError:
        # A thread, because a pack may have left enough to stall the event loop.
        await anyio.to_thread.run_sync(remove_tree, str(folder))
