"""What a freshly forked worker does before any code of its task runs.

A fork shares its parent's memory until one of the two writes, and counting references
is writing: every object, string and function that the child is the first to use costs
it a page. So all that is the same for every worker is made ready in the host, once,
and the child runs one flat function over names that it has at hand.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from oracle_workers import landlock, seccomp, syscalls
from oracle_workers.contain import (
    PROTOCOL_DESCRIPTOR,
    RELAY_DESCRIPTOR,
    Containment,
    Limits,
)

Enter = Callable[[str, int, int], None]
"""Contain this process: its own folder, its protocol, where its output goes."""


def prepare(wanted: Containment, parent: int) -> Enter:
    """Return what contains a worker right after its fork.

    Its protocol is PROTOCOL_DESCRIPTOR afterwards. `parent` is the host's process id,
    0 where the worker is the first process of its namespace.
    """
    confine, filter_calls = _confinement(wanted), _filter(wanted)
    gaps = _gaps({RELAY_DESCRIPTOR} if wanted["relayed"] else set())
    (cpu, open_files) = _own_limits(wanted["limits"])
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    apart = wanted["level"] == "namespaces"
    environ, put, home, temporary = _environment(), os.putenv, b"HOME", b"TMPDIR"
    setsid, dup2, chdir, umask = os.setsid, os.dup2, os.chdir, os.umask
    setrlimit, getppid, kill_self = resource.setrlimit, os.getppid, _kill_self
    cpu_kind, files_kind = resource.RLIMIT_CPU, resource.RLIMIT_NOFILE
    prctl, close_range = syscalls.prctl_quickly, syscalls.close_range
    die_with, death = syscalls.PR_SET_PDEATHSIG, int(signal.SIGKILL)
    subreaper = syscalls.PR_SET_CHILD_SUBREAPER
    own_protocol = PROTOCOL_DESCRIPTOR
    # A library's function is looked up at its first call, in the host once for all.
    umask(umask(0o077))

    def enter(folder: str, protocol: int, output: int) -> None:
        setsid()
        dup2(protocol, own_protocol, inheritable=False)
        dup2(output, 1)
        dup2(output, 2)
        dup2(null, 0)
        if apart:
            _leave_the_host()
        prctl(die_with, death)
        if parent and getppid() != parent:
            kill_self()
        prctl(subreaper, 1)
        chdir(folder)
        umask(0o077)
        own = folder.encode()
        put(home, own)
        put(temporary, own)
        environ[home] = environ[temporary] = own
        if confine is not None:
            confine(folder)
        for first, last in gaps:
            close_range(first, last)
        setrlimit(cpu_kind, cpu)
        setrlimit(files_kind, open_files)
        if filter_calls is not None:
            filter_calls()

    return enter


def _environment() -> Any:
    """Return what `os.environ` keeps its variables in, or `os.environb` itself.

    Setting one there costs a third of the pages, and `putenv` is called all the same.
    """
    return getattr(os.environ, "_data", os.environb)


def _confinement(wanted: Containment) -> Callable[[str], object] | None:
    """Return what narrows the file rules to one folder; None where there are none."""
    if wanted["level"] == "process":
        return None
    return landlock.FileRules(wanted["readable"]).restrict


def _filter(wanted: Containment) -> Callable[[], object] | None:
    """Return what forbids a worker the calls that its host still needs."""
    if wanted["level"] != "namespaces":
        return None
    return seccomp.CallFilter(seccomp.CONFINED).install


def _leave_the_host() -> None:
    syscalls.call_quickly("unshare", syscalls.CLONE_NEWIPC)
    syscalls.give_up_capabilities()


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _gaps(kept: set[int]) -> list[tuple[int, int]]:
    """Return the descriptors to close, as ranges."""
    return syscalls.gaps({0, 1, 2, PROTOCOL_DESCRIPTOR, *kept})


def _own_limits(limits: Limits) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return a worker's limits of CPU time and of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = limits["open_files"]
    if hard != resource.RLIM_INFINITY:
        open_files = min(open_files, hard)
    return (limits["cpu_s"], limits["cpu_s"] + 1), (open_files, open_files)
