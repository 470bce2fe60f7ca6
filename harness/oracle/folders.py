"""Scratch folders of hosts and workers: made before the fork, gone after the kill."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio

from oracle_workers.folders import remove_tree

PREFIX = "fairtrial-"


def make_root(parent: Path | None) -> Path:
    """Make the private folder of one oracle."""
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()


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
