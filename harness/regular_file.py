"""Files that somebody named are asked what they are before they are opened.

Opening a pipe waits for whoever may write to it, and a device need never end. A link
that leads to a regular file is one.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from harness.errors import UsageError


def refuse_special_file(path: Path) -> None:
    """Raise OSError for a pipe, a device or a folder; what is absent passes."""
    if path.exists() and not path.is_file():
        code = errno.EISDIR if path.is_dir() else errno.EINVAL
        words = os.strerror(code) if path.is_dir() else "Not a regular file"
        raise OSError(code, words, str(path))


def read_regular_file(path: Path) -> bytes:
    """Return the bytes of a file; raise OSError for what is none or is absent."""
    refuse_special_file(path)
    return path.read_bytes()


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
        refuse_special_file(path)
        with path.open("rb"):
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
