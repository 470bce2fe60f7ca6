"""Processes of a dead pack host that fell to this process.

Normally a keeper leaves none. If it was itself killed, its descendants are adopted
here (this process is a child subreaper). They are told apart from this process's own
children by the mark in their environment, or by a process id known from before.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Set as AbstractSet
from pathlib import Path

from oracle_workers.processes import children
from oracle_workers.start import MARK

_ROUNDS = 50
_MARK = "=".join(MARK).encode()


def end(known: AbstractSet[int], keepers: AbstractSet[int]) -> int:
    """Kill and reap adopted pack processes, except living keepers; return how many."""
    ended = 0
    for _ in range(_ROUNDS):
        found = [
            pid
            for pid in children(os.getpid())
            if pid not in keepers and (pid in known or _is_marked(pid))
        ]
        if not found:
            break
        for pid in found:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        ended += len(found)
    return ended


def _is_marked(pid: int) -> bool:
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return _MARK in content.split(b"\0")
