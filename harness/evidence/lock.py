"""One run at a time in a folder, and who it is.

The lock is the kernel's (`flock` on `<folder>/.lock`), so it ends with its process,
however that ends, and a lock file that was left behind blocks nobody. Its text only
tells the refused one who holds the folder; it is never trusted for the decision.
Descriptors are closed on exec, so no child keeps the lock alive.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from harness.canonical import canonical_bytes
from harness.errors import EvidenceError
from harness.evidence.disk import machine_refusals
from harness.regular_file import regular_descriptor

LOCK_FILE: Final = ".lock"
_LARGEST_NOTE: Final = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a folder."""

    pid: int
    host: str
    started_at: str

    def as_text(self) -> str:
        """Return the holder in words."""
        return f"process {self.pid} on {self.host}, since {self.started_at}"


class RunLock:
    """The lock on a run folder; a context manager that releases it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, folder: Path, *, started_at: str) -> Self:
        """Take the lock or raise EvidenceError (`eval_run_in_use`) at once.

        `started_at` is shown to whoever is refused.
        """
        path = folder / LOCK_FILE
        with machine_refusals("lock the output folder", path):
            # A link would have the note replace what it leads to.
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(path, flags, 0o600)
            try:
                _lock(descriptor)
                note = {
                    "host": socket.gethostname(),
                    "pid": os.getpid(),
                    "started_at": started_at,
                }
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, canonical_bytes(note), 0)
            except BaseException:
                os.close(descriptor)
                raise
        return cls(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the folder back; releasing twice is allowed.

        The file stays: removing it would let two runs lock two files of one name.
        """
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = -1


def require_unlocked(folder: Path) -> None:
    """Raise EvidenceError (`eval_run_in_use`) where a run holds the folder now."""
    path = folder / LOCK_FILE
    with machine_refusals("look at the lock", path):
        try:
            descriptor = regular_descriptor(path)
        except FileNotFoundError:
            return
        try:
            _lock(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _read_holder(descriptor)
        raise EvidenceError(
            "eval_run_in_use",
            "another run is using this output folder",
            where=LOCK_FILE,
            expected="a folder that no other process writes",
            actual="a process that did not say who it is"
            if holder is None
            else holder.as_text(),
            recovery="wait for it, end it, or choose another output folder",
        ) from None


def _read_holder(descriptor: int) -> Holder | None:
    try:
        note = json.loads(os.pread(descriptor, _LARGEST_NOTE, 0))
        return Holder(int(note["pid"]), str(note["host"]), str(note["started_at"]))
    except (ValueError, TypeError, KeyError):
        return None
