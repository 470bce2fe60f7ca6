"""Containment of pack code, in three stated levels, each holding all of the one before.

`process`: own session, limits, fixed environment, private empty working folder, no
foreign descriptors, no new privileges, no capabilities, dies with its parent.
`confined`: and file rules (Landlock) and a system call filter (seccomp).
`namespaces`: and own user, process, network, IPC and mount namespaces.

A level is applied whole or refused: the missing piece raises UnavailableError before
any pack code is imported. What was applied is returned as plain JSON, with every
limit that the kernel does not enforce for this user named.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
from typing import Any, TypedDict

from oracle_workers import landlock, seccomp, syscalls

LEVELS = ("process", "confined", "namespaces")
ENVIRONMENT = {
    "TZ": "UTC",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PATH": "/usr/bin:/bin",
}
"""The whole environment of pack code, with HOME and TMPDIR of its own folder."""

PROTOCOL_DESCRIPTOR = 900
"""Where a worker keeps its protocol; far above what pack code sees or closes."""
RELAY_DESCRIPTOR = 899
"""Where a host that leads to an endpoint keeps the line to its relay."""

_CAP_DAC_OVERRIDE = 1 << 1
_CAP_DAC_READ_SEARCH = 1 << 2
_KEPT_CAPABILITIES = _CAP_DAC_OVERRIDE | _CAP_DAC_READ_SEARCH
_SESSIONS_PER_USER = 64
_HOST_OPEN_FILES = 4096


class UnavailableError(Exception):
    """A piece of the level asked for cannot be had on this machine."""

    def __init__(self, missing: str, detail: str) -> None:
        self.missing = missing
        self.detail = detail
        super().__init__(f"{missing}: {detail}")


class Limits(TypedDict):
    """Limits of one worker; seconds, bytes and counts."""

    cpu_s: int
    memory_bytes: int
    open_files: int
    processes: int
    file_bytes: int
    output_bytes: int


class Containment(TypedDict):
    """What the evaluator asks for."""

    level: str
    limits: Limits
    scratch: str
    """The folder that holds one folder for each worker."""
    readable: list[str]
    """What pack code may read beside its own folder, at `confined` and above."""
    relayed: bool
    """Whether workers speak to an endpoint: they keep the line to the relay, and
    nothing else may look into their memory."""


def contain_host(wanted: Containment) -> dict[str, Any]:
    """Contain this process before it imports a pack; return what was applied."""
    level = wanted["level"]
    if level not in LEVELS:
        raise UnavailableError("level", f"{level!r} is not one of {', '.join(LEVELS)}")
    if level != "process" and not syscalls.known_machine():
        raise UnavailableError("machine", f"no call numbers for {syscalls.MACHINE}")
    if level == "namespaces":
        # A host in a user namespace needs its rights there to give each worker a
        # process namespace; its workers give them up, and nobody gets them again.
        syscalls.bound_capabilities()
    else:
        syscalls.drop_capabilities(_KEPT_CAPABILITIES)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if wanted["relayed"]:
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    applied: dict[str, Any] = {
        "level": level,
        "session": True,
        "death_signal": True,
        "descriptors_closed": True,
        "no_new_privileges": True,
        "environment": sorted(ENVIRONMENT),
        "limits": _limit_host(wanted["limits"]),
    }
    if level != "process":
        applied |= _confine(wanted, level)
    return applied


def _confine(wanted: Containment, level: str) -> dict[str, Any]:
    apart = level == "namespaces"
    denied: tuple[str, ...] = seccomp.HOST_OF_NAMESPACES if apart else seccomp.CONFINED
    denied += landlock.left_open()
    try:
        rules = landlock.restrict(wanted["readable"], wanted["scratch"])
    except landlock.LandlockError as error:
        raise UnavailableError("landlock", str(error)) from None
    try:
        calls = seccomp.install((*denied, *landlock.left_open()))
    except seccomp.SeccompError as error:
        raise UnavailableError("seccomp", str(error)) from None
    _check_that_it_bites()
    return {"landlock": rules, "seccomp": calls}


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; 0 skips the check."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _limit_host(limits: Limits) -> dict[str, Any]:
    """Set what the host shares with its workers and say how each limit is held."""
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_AS, limits["memory_bytes"])
    _set_limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
    _raise_open_files()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    applied: dict[str, Any] = {
        name: {"value": value, "enforced": True} for name, value in limits.items()
    }
    if not _process_limit_bites():
        applied["processes"] = {
            "value": limits["processes"],
            "enforced": False,
            "reason": "the kernel does not hold this user to it; root is exempt",
        }
    else:
        # The kernel counts per user, not per worker.
        bound = _tasks_of_user() + limits["processes"] * _SESSIONS_PER_USER
        _set_limit(resource.RLIMIT_NPROC, bound)
        applied["processes"] |= {"scope": "user", "applied": bound}
    return applied


def _raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _HOST_OPEN_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if wanted <= PROTOCOL_DESCRIPTOR:
        raise UnavailableError(
            "open files",
            f"the hard limit is {hard}, and {PROTOCOL_DESCRIPTOR + 1} are needed "
            "(ulimit -n)",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _set_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _process_limit_bites() -> bool:
    """Try it in a child: one process more than a limit of one."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            second = os.fork()
            if second == 0:
                os._exit(0)
            os.waitpid(second, 0)
        except OSError:
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def _tasks_of_user() -> int:
    user = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count


def _check_that_it_bites() -> None:
    try:
        os.listdir("/")
    except PermissionError:
        pass
    else:
        raise UnavailableError("landlock", "applied, and / can still be listed")
    try:
        socket.socket().close()
    except PermissionError:
        return
    raise UnavailableError("seccomp", "applied, and a socket can still be made")
