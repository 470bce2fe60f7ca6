"""What containment this machine offers, found out by trying it.

Runs in a process of its own, and every level in a child of that, so nothing stays
restricted afterwards. Standard library only; `harness.oracle.sandbox` starts it.
"""

from __future__ import annotations

import os
import platform
import resource
import tempfile
from typing import Any

from oracle_workers import landlock, namespaces, plain_json, syscalls
from oracle_workers.contain import (
    LEVELS,
    Containment,
    Limits,
    UnavailableError,
    contain_host,
)

_LIMITS = Limits(
    cpu_s=5,
    memory_bytes=1 << 30,
    open_files=64,
    processes=16,
    file_bytes=1 << 20,
    output_bytes=1 << 20,
)


def main() -> None:
    """Print the findings as one JSON object."""
    with tempfile.TemporaryDirectory() as scratch:
        levels = {level: _try(level, scratch) for level in LEVELS}
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    findings = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "user": os.getuid(),
        "landlock_abi": landlock.abi(),
        "system_calls_known": syscalls.known_machine(),
        "open_files_hard_limit": hard,
        "levels": levels,
    }
    os.write(1, plain_json.encode(findings))


def _try(level: str, scratch: str) -> dict[str, Any]:
    """Apply one level in a child; return what it said."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _say(writer, level, scratch)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(pid, 0)
    if said:
        found: dict[str, Any] = plain_json.decode(said)
        return found
    return {"available": False, "missing": "process", "detail": f"ended, {status}"}


def _say(writer: int, level: str, scratch: str) -> None:
    """Write the findings, from process 1 of the namespaces where there are any."""
    entered: list[str] = []
    if level == "namespaces":
        try:
            entered = namespaces.enter()
        except UnavailableError as error:
            os.write(writer, plain_json.encode(_missing(error)))
            return
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return
    os.write(writer, plain_json.encode(_applied(level, scratch, entered)))


def _missing(error: UnavailableError) -> dict[str, Any]:
    return {"available": False, "missing": error.missing, "detail": error.detail}


def _applied(level: str, scratch: str, entered: list[str]) -> dict[str, Any]:
    wanted = Containment(
        level=level, limits=_LIMITS, scratch=scratch, readable=[], relayed=False
    )
    if entered and os.getpid() != 1:
        return _missing(UnavailableError("pid namespace", "not the first process"))
    try:
        applied = contain_host(wanted)
    except UnavailableError as error:
        return _missing(error)
    except OSError as error:
        return {"available": False, "missing": "containment", "detail": str(error)}
    if entered:
        applied["namespaces"] = entered
    return {"available": True, "applied": applied}
