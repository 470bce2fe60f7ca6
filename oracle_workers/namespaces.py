"""Namespaces for a pack host and its workers, without any privilege needed.

The keeper enters user, network, IPC and mount namespaces, and its next child is the
first process of a new process namespace. That host gives each worker a process
namespace of its own, so that killing a worker kills all it ever started.
"""

from __future__ import annotations

import os

from oracle_workers import syscalls
from oracle_workers.contain import UnavailableError

_MS_NOSUID = 0x2
_MS_NODEV = 0x4
_MS_NOEXEC = 0x8
_MS_REC = 0x4000
_MS_PRIVATE = 1 << 18
_SHARED_MEMORY = "/dev/shm"


def enter() -> list[str]:
    """Enter the namespaces of a pack host; the next fork is its process 1.

    Returns the names of what was entered; raises UnavailableError.
    """
    user, group = os.getuid(), os.getgid()
    flags = (
        syscalls.CLONE_NEWUSER
        | syscalls.CLONE_NEWNS
        | syscalls.CLONE_NEWNET
        | syscalls.CLONE_NEWIPC
        | syscalls.CLONE_NEWPID
    )
    try:
        syscalls.call("unshare", flags)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise UnavailableError("namespaces", str(error)) from None
    try:
        syscalls.call("mount", b"none", b"/", 0, _MS_REC | _MS_PRIVATE, 0)
        if os.path.isdir(_SHARED_MEMORY):
            _cover(_SHARED_MEMORY)
    except OSError as error:
        raise UnavailableError("mount namespace", str(error)) from None
    return ["user", "pid", "net", "ipc", "mount"]


def own_process_namespace() -> int:
    """Open the process namespace that this process lives in; a descriptor."""
    return os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)


def fork_apart(own: int) -> int:
    """Fork a child that is process 1 of a new process namespace.

    `own` is what `own_process_namespace` returned; without going back there the next
    child would join the namespace of the first.
    """
    syscalls.call("unshare", syscalls.CLONE_NEWPID)
    pid = os.fork()
    if pid:
        syscalls.call("setns", own, syscalls.CLONE_NEWPID)
    return pid


def _cover(folder: str) -> None:
    syscalls.call(
        "mount",
        b"tmpfs",
        folder.encode(),
        b"tmpfs",
        _MS_NOSUID | _MS_NODEV | _MS_NOEXEC,
        b"size=64m",
    )


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
