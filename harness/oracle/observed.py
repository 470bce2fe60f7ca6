"""What the kernel says of a worker, seen from outside at its birth.

A host states once what it applied, and it runs pack code. This is the other half of
the record: read by the evaluator, for each worker, from places that the worker cannot
write. A worker that differs from its level is refused. File rules do not show from
outside; they are the host's, applied before the pack was imported.
"""

from __future__ import annotations

import os
import re
import resource
from typing import Final

from harness.canonical import Json
from harness.oracle.contracts import IsolationLevel, WorkerLimits

_FIELDS: Final = re.compile(r"^(NoNewPrivs|Seccomp|CapEff|NSpid):(.*)$", re.MULTILINE)
_STATUS_SIZE: Final = 1 << 16
_FILTERED: Final = "2"
_READS_PAST_FILE_RIGHTS: Final = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: root keeps its usual reach over files."""


def observe(pid: int) -> dict[str, Json]:
    """Return what can be seen of a process; {} where it has ended already."""
    try:
        text = _status(pid)
        session = os.getsid(pid)
        cpu_s = resource.prlimit(pid, resource.RLIMIT_CPU)[0]
        open_files = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
        memory_bytes = resource.prlimit(pid, resource.RLIMIT_AS)[0]
    except (OSError, ValueError):
        return {}
    found = {name: value.split() for name, value in _FIELDS.findall(text)}
    if found.keys() < {"NoNewPrivs", "CapEff"}:
        return {}
    return {
        "own_session": session == pid,
        "no_new_privileges": found["NoNewPrivs"] == ["1"],
        "system_calls_filtered": found.get("Seccomp") == [_FILTERED],
        "capabilities": int(found["CapEff"][0], 16),
        "first_of_a_process_namespace": found.get("NSpid", [""])[-1] == "1",
        "cpu_s": cpu_s,
        "open_files": open_files,
        "memory_bytes": memory_bytes,
    }


def differences(
    seen: dict[str, Json], level: IsolationLevel, limits: WorkerLimits
) -> list[str]:
    """Name everything in which a worker is less contained than its level says."""
    if not seen:
        return []
    apart = level == "namespaces"
    kept = 0 if apart else _READS_PAST_FILE_RIGHTS
    wanted = {
        "own_session": seen["own_session"],
        "no_new_privileges": seen["no_new_privileges"],
        "system_calls_filtered": level == "process" or seen["system_calls_filtered"],
        "capabilities": not seen["capabilities"] & ~kept,
        "first_of_a_process_namespace": (
            not apart or seen["first_of_a_process_namespace"]
        ),
        "cpu_s": _within(seen["cpu_s"], limits.cpu_s),
        "open_files": _within(seen["open_files"], limits.open_files),
        "memory_bytes": _within(seen["memory_bytes"], limits.memory_bytes),
    }
    return [name for name, holds in wanted.items() if not holds]


def _status(pid: int) -> str:
    descriptor = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # The kernel gives the whole text to one read that has room for it.
        return os.read(descriptor, _STATUS_SIZE).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _within(value: int, limit: int) -> bool:
    return value != resource.RLIM_INFINITY and value <= limit
