"""Raw Linux calls that the standard library does not offer, by ctypes.

Numbers are given for x86_64 and aarch64; any other machine is refused by name, since
a guessed system call number is worse than none.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_NEWTIME = 0x00000080
CLONE_NEW_ANY = (
    CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
    | CLONE_NEWTIME
)

# Calls added since Linux 5.0 have one number on every machine.
_SHARED_NUMBERS = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "close_range": 436,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}
_NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "shmget": 29,
        "socket": 41,
        "connect": 42,
        "accept": 43,
        "bind": 49,
        "listen": 50,
        "socketpair": 53,
        "clone": 56,
        "semget": 64,
        "msgget": 68,
        "truncate": 76,
        "chmod": 90,
        "chown": 92,
        "lchown": 94,
        "ptrace": 101,
        "syslog": 103,
        "capget": 125,
        "capset": 126,
        "utime": 132,
        "mknod": 133,
        "setpriority": 141,
        "sched_setparam": 142,
        "sched_setscheduler": 144,
        "pivot_root": 155,
        "adjtimex": 159,
        "chroot": 161,
        "acct": 163,
        "settimeofday": 164,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "sethostname": 170,
        "setdomainname": 171,
        "iopl": 172,
        "ioperm": 173,
        "init_module": 175,
        "delete_module": 176,
        "quotactl": 179,
        "setxattr": 188,
        "lsetxattr": 189,
        "removexattr": 197,
        "lremovexattr": 198,
        "sched_setaffinity": 203,
        "clock_settime": 227,
        "utimes": 235,
        "mq_open": 240,
        "kexec_load": 246,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "ioprio_set": 251,
        "inotify_init": 253,
        "inotify_add_watch": 254,
        "mknodat": 259,
        "fchownat": 260,
        "futimesat": 261,
        "fchmodat": 268,
        "unshare": 272,
        "utimensat": 280,
        "accept4": 288,
        "inotify_init1": 294,
        "perf_event_open": 298,
        "fanotify_init": 300,
        "prlimit64": 302,
        "name_to_handle_at": 303,
        "open_by_handle_at": 304,
        "clock_adjtime": 305,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "finit_module": 313,
        "sched_setattr": 314,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": {
        "setxattr": 5,
        "lsetxattr": 6,
        "removexattr": 14,
        "lremovexattr": 15,
        "inotify_init1": 26,
        "inotify_add_watch": 27,
        "ioprio_set": 30,
        "mknodat": 33,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "truncate": 45,
        "chroot": 51,
        "fchmodat": 53,
        "fchownat": 54,
        "quotactl": 60,
        "utimensat": 88,
        "acct": 89,
        "capget": 90,
        "capset": 91,
        "unshare": 97,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "clock_settime": 112,
        "syslog": 116,
        "ptrace": 117,
        "sched_setparam": 118,
        "sched_setscheduler": 119,
        "sched_setaffinity": 122,
        "setpriority": 140,
        "reboot": 142,
        "sethostname": 161,
        "setdomainname": 162,
        "settimeofday": 170,
        "adjtimex": 171,
        "mq_open": 180,
        "msgget": 186,
        "semget": 190,
        "shmget": 194,
        "socket": 198,
        "socketpair": 199,
        "bind": 200,
        "listen": 201,
        "accept": 202,
        "connect": 203,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "clone": 220,
        "swapon": 224,
        "swapoff": 225,
        "perf_event_open": 241,
        "accept4": 242,
        "prlimit64": 261,
        "fanotify_init": 262,
        "name_to_handle_at": 264,
        "open_by_handle_at": 265,
        "clock_adjtime": 266,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "finit_module": 273,
        "sched_setattr": 274,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
    },
}
AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_CAPABILITY_VERSION = 0x20080522
_CLOSE_RANGE = _SHARED_NUMBERS["close_range"]
MACHINE = os.uname().machine
_LIBC = ctypes.CDLL(None, use_errno=True)
# Without declared types and without a kept error number, a first call in a new fork
# writes to a quarter of the pages.
_quick_call = ctypes.CDLL(None)["syscall"]
_quick_prctl = ctypes.CDLL(None)["prctl"]


def known_machine() -> bool:
    """Tell whether the system call numbers of this machine are known."""
    return MACHINE in _NUMBERS


def number(name: str) -> int | None:
    """Return the number of a system call here; None where it does not exist."""
    shared = _SHARED_NUMBERS.get(name)
    if shared is not None:
        return shared
    return _NUMBERS.get(MACHINE, {}).get(name)


def call(name: str, *arguments: object) -> int:
    """Make a system call; raise OSError naming it.

    Integers are passed as longs, bytes and ctypes objects as pointers.
    """
    found = number(name)
    if found is None:
        raise OSError(f"{name}: no system call number is known for {MACHINE}")
    converted = [
        ctypes.c_long(item) if isinstance(item, int) else item for item in arguments
    ]
    result = int(_LIBC.syscall(ctypes.c_long(found), *converted))
    if result == -1:
        raise _error(name)
    return result


def call_quickly(name: str, *arguments: int | bytes | ctypes.Array[Any]) -> int:
    """Make a system call with integers below 2**31 and pointers; raise OSError.

    For what a fork does first. A call that fails is made a second time, by `call`.
    """
    result: int = _quick_call(number(name), *arguments)
    return result if result != -1 else call(name, *arguments)


def prctl(option: int, *arguments: int) -> None:
    """Call prctl with up to four unsigned longs; raise OSError."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    if _LIBC.prctl(option, *(ctypes.c_ulong(item) for item in padded)) == -1:
        raise _error(f"prctl {option}")


def prctl_quickly(option: int, first: int, second: int | bytes = 0) -> None:
    """Call prctl with integers below 2**31, or with a pointer; raise OSError."""
    if _quick_prctl(option, first, second, 0, 0) == -1:
        raise OSError(f"prctl {option} was refused")


def _error(name: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{name}: {os.strerror(code)}")


def close_all_but(keep: set[int]) -> None:
    """Close every open descriptor outside `keep`."""
    for first, last in gaps(keep):
        close_range(first, last)


def gaps(keep: set[int]) -> list[tuple[int, int]]:
    """Return the ranges of descriptors that lie outside `keep`."""
    found = []
    start = 0
    for descriptor in (*sorted(keep), 1 << 31):
        if descriptor > start:
            found.append((start, descriptor - 1))
        start = descriptor + 1
    return found


def close_range(first: int, last: int) -> None:
    """Close a range of descriptors, both ends included."""
    if _quick_call(_CLOSE_RANGE, first, last, 0) == -1:
        os.closerange(first, min(last + 1, 1 << 16))


def release_free_memory() -> None:
    """Give back the pages of the heap that nothing is on, where the library can."""
    trim = getattr(_LIBC, "malloc_trim", None)
    if trim is not None:
        trim(0)


def drop_capabilities(keep: int = 0) -> None:
    """Give up every capability outside the bit mask `keep`, for good."""
    bound_capabilities(keep)
    give_up_capabilities(keep)


def bound_capabilities(keep: int = 0) -> None:
    """Make sure that no program started from here ever gains others than `keep`."""
    for capability in range(64):
        if keep >> capability & 1:
            continue
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            # Unprivileged already, or past the kernel's last capability.
            break


def give_up_capabilities(keep: int = 0) -> None:
    """Stop holding every capability outside the bit mask `keep`."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    if keep:
        call("capget", header, sets)
    for half in range(2):
        mask = keep >> 32 * half & 0xFFFFFFFF
        sets[3 * half] &= mask
        sets[3 * half + 1] &= mask
        sets[3 * half + 2] = 0
    call_quickly("capset", header, sets)
