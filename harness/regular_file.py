"""Files that somebody named or wrote are read where they are regular files.

Opening a pipe waits for whoever may write to it, and a device need never end; both are
refused, whenever they come to stand there. A link that leads to a regular file is one.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from harness.errors import UsageError


def open_regular_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file for reading bytes; raise OSError for what is none or is absent."""
    return open(path, "rb", buffering, opener=regular_descriptor)


def read_regular_file(path: Path) -> bytes:
    """Return the bytes of a file; raise OSError for what is none or is absent."""
    with open_regular_file(path) as stream:
        return stream.read()


def regular_descriptor(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file; raise OSError for what is none or is absent."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse_special(os.fstat(descriptor).st_mode, str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def require_file(path: Path, option: str) -> None:
    """Raise UsageError (`eval_cli_invalid`) unless the path is a readable file."""
    require_regular(
        path,
        f"{option} names no file that can be read",
        f"give {option} the path of the file",
    )


def require_regular(path: Path, problem: str, recovery: str) -> None:
    """Raise UsageError in these words unless the path is a readable file."""
    try:
        with open_regular_file(path):
            return
    except OSError as error:
        raise UsageError(
            "eval_cli_invalid",
            problem,
            where=str(path),
            expected="an existing regular file: it is read more than once",
            actual=error.strerror or str(error),
            recovery=recovery,
        ) from None


def _refuse_special(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)
