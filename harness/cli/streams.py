"""Standard streams that may be missing or end before the command does.

Progress goes to stderr while a run works for hours; a reader of it that goes away
must not end the run. Results go to stdout, and there a lost reader is told apart by
the exit status.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO


class LastingStderr:
    """Passes everything on to a stream until that breaks, then nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or lose the text when nobody can read it any more."""
        try:
            return self._stream.write(text)
        except OSError:
            discard(self._stream)
            return len(text)

    def flush(self) -> None:
        """Flush, or lose what is left when nobody can read it any more."""
        try:
            self._stream.flush()
        except OSError:
            discard(self._stream)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def discard(stream: TextIO) -> None:
    """Let later writes and the last flush go nowhere instead of a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def steady_streams() -> None:
    """Open what a process was started without, and let stderr outlive its reader.

    Missing streams are opened first, so that no file of a run takes their numbers.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            nowhere = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
    sys.stderr = LastingStderr(sys.stderr)
