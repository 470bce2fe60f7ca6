"""Processes of a dead pack host that fell to this process.

Normally the keeper leaves none. If it was itself killed, its descendants are adopted
here (this process is a child subreaper) and told apart by the mark that their host's
environment carried, so that no other child of this process is touched.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from harness.oracle.launch import TOKEN_VARIABLE
from oracle_workers.processes import children

_ROUNDS = 50


def end(token: str) -> int:
    """Kill and reap adopted processes that carry the token; return how many."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = [pid for pid in children(os.getpid()) if _carries(pid, mark)]
        if not found:
            break
        for pid in found:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            ended.add(pid)
    return len(ended)


def _carries(pid: int, mark: bytes) -> bool:
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return mark in content.split(b"\0")
