"""A process that can reach nobody: how a replay shows that evidence is enough.

Inside `secluded()` the interpreter's audit hook refuses every outgoing connection,
every name lookup and every new process. The hook cannot be removed, only switched
off, so a secluded command should be the last thing that a process does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from harness.errors import EvidenceError

_FORBIDDEN: Final = frozenset(
    {
        "socket.connect",
        "socket.bind",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendto",
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
    }
)
_state = {"installed": False, "active": False}


@contextmanager
def secluded() -> Iterator[None]:
    """Refuse sockets to anybody and new processes for as long as this lasts."""
    if not _state["installed"]:
        sys.addaudithook(_refuse)
        _state["installed"] = True
    _state["active"] = True
    try:
        yield
    finally:
        _state["active"] = False


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if _state["active"] and event in _FORBIDDEN:
        raise EvidenceError(
            "eval_evidence_invalid",
            "a replay tried to reach the outside world",
            where=event,
            expected="evidence alone",
            actual=repr(arguments)[:200],
            recovery="report this as a defect",
        )
