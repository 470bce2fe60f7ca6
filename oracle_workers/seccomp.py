"""A system call filter, assembled by hand: a deny-list that answers EPERM.

Every `socket` is refused whatever its family, since a Unix socket of another program
is a way out as well. A `socketpair` of streams stays (one of datagrams could send to
any address), and no socket that was passed in can be turned to another one. What file
rules leave open (owners, attributes, watching) is refused, and modes and dates stay as
they are. Limits and priorities can be set for the caller alone, since the kernel lets
one user's processes set them for each other. Foreign call conventions (x32, another
architecture) are refused whole.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import Any

from oracle_workers import syscalls

_ALWAYS = (
    "socket",
    "connect",
    "bind",
    "listen",
    "accept",
    "accept4",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_getfd",
    "kcmp",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "name_to_handle_at",
    "open_by_handle_at",
    "fanotify_init",
    "mknod",
    "mknodat",
    "add_key",
    "request_key",
    "keyctl",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "iopl",
    "ioperm",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "clock_adjtime",
    "sethostname",
    "setdomainname",
    "chown",
    "lchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "removexattrat",
    "file_setattr",
    "inotify_init",
    "inotify_init1",
    "inotify_add_watch",
    "shmget",
    "semget",
    "msgget",
    "mq_open",
)
CONFINED = (*_ALWAYS, "setns", "unshare")
"""What pack code may not call."""
HOST_OF_NAMESPACES = _ALWAYS
"""The same for a host that must still give each worker a process namespace."""
RELAY = tuple(name for name in CONFINED if name not in ("socket", "connect", "bind"))
"""What a relay may not call; name lookups bind a socket to ask about addresses."""

IGNORED = (
    "chmod",
    "fchmodat",
    "fchmodat2",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
)
"""Answered as if done. File rules leave modes and dates of every file open, and a
refusal would break the copying of files in a pack's own folder."""
_ON_SELF_ONLY = (
    "prlimit64",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
)
"""Allowed where the first argument, a process, is 0: the caller."""
_ON_SELF_OF_KIND = {"setpriority": 0, "ioprio_set": 1}
"""Allowed where the first argument says `process` and the second one is 0."""

_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_IGNORE = 0x00050000
_UNKNOWN_CALL = 0x00050000 | errno.ENOSYS
_OFFSET_NUMBER = 0
_OFFSET_ARCHITECTURE = 4
_OFFSET_FIRST_ARGUMENT = 16
_OFFSET_SECOND_ARGUMENT = 24
_X32_BIT = 0x40000000
_AF_UNIX = 1
_DATAGRAM_BIT = 2
"""Set in the types of sockets that send to an address: datagram and raw."""
_MODE_FILTER = 2
_EXIT_SIGNAL = 0xFF
"""The low byte of clone's flags; CLONE_NEWTIME has no meaning there."""


class SeccompError(Exception):
    """The filter cannot be installed; the text says why."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class CallFilter:
    """An assembled filter, for the many processes that install the same one."""

    def __init__(self, denied: tuple[str, ...]) -> None:
        """Assemble it; raise SeccompError where call numbers are not known."""
        code = program(denied)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = bytes(_Program(len(code) // 8, ctypes.addressof(self._code)))
        self.applied = {"denied": len(denied), "sockets": "none"}

    def install(self) -> dict[str, Any]:
        """Refuse the calls in this process and all it forks; raise SeccompError."""
        try:
            syscalls.prctl_quickly(syscalls.PR_SET_SECCOMP, _MODE_FILTER, self._program)
        except OSError as error:
            raise SeccompError(str(error)) from None
        return self.applied


def install(denied: tuple[str, ...]) -> dict[str, Any]:
    """Refuse the named calls in this process and all it forks; raise SeccompError."""
    return CallFilter(denied).install()


def program(denied: tuple[str, ...]) -> bytes:
    """Return the filter as the kernel's instructions, eight bytes each."""
    architecture = syscalls.AUDIT_ARCHITECTURES.get(syscalls.MACHINE)
    if architecture is None:
        raise SeccompError(f"no system call numbers for {syscalls.MACHINE}")
    steps = [
        _step(_LOAD, _OFFSET_ARCHITECTURE),
        _step(_JUMP_EQUAL, architecture, 1, 0),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _OFFSET_NUMBER),
    ]
    if syscalls.MACHINE == "x86_64":
        steps += [_step(_JUMP_ANY_BIT, _X32_BIT, 0, 1), _step(_RETURN, _REFUSE)]
    for name in denied:
        number = syscalls.number(name)
        if number is not None:
            steps += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _REFUSE)]
    for name in IGNORED:
        number = syscalls.number(name)
        if number is not None:
            steps += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _IGNORE)]
    steps += _on_self_only()
    # glibc falls back to `clone`, whose flags can be seen.
    steps += [
        _step(_JUMP_EQUAL, _known("clone3"), 0, 1),
        _step(_RETURN, _UNKNOWN_CALL),
        _step(_JUMP_EQUAL, _known("clone"), 0, 4),
        _step(_LOAD, _OFFSET_FIRST_ARGUMENT),
        _step(_JUMP_ANY_BIT, syscalls.CLONE_NEW_ANY & ~_EXIT_SIGNAL, 0, 1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
        _step(_JUMP_EQUAL, _known("socketpair"), 0, 5),
        _step(_LOAD, _OFFSET_FIRST_ARGUMENT),
        _step(_JUMP_EQUAL, _AF_UNIX, 0, 2),
        _step(_LOAD, _OFFSET_SECOND_ARGUMENT),
        _step(_JUMP_ANY_BIT, _DATAGRAM_BIT, 0, 1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _on_self_only() -> list[bytes]:
    steps = []
    for name in _ON_SELF_ONLY:
        steps += [
            _step(_JUMP_EQUAL, _known(name), 0, 4),
            _step(_LOAD, _OFFSET_FIRST_ARGUMENT),
            _step(_JUMP_EQUAL, 0, 1, 0),
            _step(_RETURN, _REFUSE),
            _step(_RETURN, _ALLOW),
        ]
    for name, kind in _ON_SELF_OF_KIND.items():
        steps += [
            _step(_JUMP_EQUAL, _known(name), 0, 6),
            _step(_LOAD, _OFFSET_FIRST_ARGUMENT),
            _step(_JUMP_EQUAL, kind, 0, 2),
            _step(_LOAD, _OFFSET_SECOND_ARGUMENT),
            _step(_JUMP_EQUAL, 0, 1, 0),
            _step(_RETURN, _REFUSE),
            _step(_RETURN, _ALLOW),
        ]
    return steps


def _known(name: str) -> int:
    number = syscalls.number(name)
    if number is None:
        raise SeccompError(f"{name} has no number on {syscalls.MACHINE}")
    return number


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
