"""Removing a scratch folder after pack code was in it.

Pack code may leave anything behind: links, closed folders, thousands of files, paths
too long to name. Removal follows no link and goes by descriptors.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator


def remove_tree(folder: str) -> None:
    """Remove a folder and everything in it, however deep and however closed.

    Each level's folders are moved up and emptied in turn, so depth costs no stack and
    no descriptors.
    """
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    spare_names = (f"{os.urandom(8).hex()}-{count}" for count in itertools.count())
    try:
        while names := os.listdir(root):
            for name in names:
                _empty(root, name, spare_names)
    finally:
        os.close(root)
    os.rmdir(folder)


def _empty(root: int, name: str, spare_names: Iterator[str]) -> None:
    """Remove one entry; folders inside it come up into the root instead."""
    if not _is_folder(name, root):
        os.unlink(name, dir_fd=root)
        return
    os.chmod(name, 0o700, dir_fd=root)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        for entry in os.listdir(inner):
            if _is_folder(entry, inner):
                # Moving a folder needs the right to write its `..`.
                os.chmod(entry, 0o700, dir_fd=inner)
                os.rename(entry, next(spare_names), src_dir_fd=inner, dst_dir_fd=root)
            else:
                os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=root)


def _is_folder(name: str, parent: int) -> bool:
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    return stat.S_ISDIR(mode)
