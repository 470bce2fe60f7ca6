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
    environ, die_with = os.environ, syscalls.PR_SET_PDEATHSIG
    setsid, dup2, chdir, umask = os.setsid, os.dup2, os.chdir, os.umask
    setrlimit, getppid, kill_self = resource.setrlimit, os.getppid, _kill_self
    cpu_kind, files_kind = resource.RLIMIT_CPU, resource.RLIMIT_NOFILE
    prctl, error_of = syscalls.raw_prctl, syscalls.error_of
    close_range = syscalls.close_range
    death, subreaper = int(signal.SIGKILL), syscalls.PR_SET_CHILD_SUBREAPER
    own_protocol = PROTOCOL_DESCRIPTOR

    def enter(folder: str, protocol: int, output: int) -> None:
        setsid()
        if apart:
            _leave_the_host()
        if prctl(die_with, death, 0, 0, 0) == -1:
            raise error_of("death signal")
        if parent and getppid() != parent:
            kill_self()
        if prctl(subreaper, 1, 0, 0, 0) == -1:
            raise error_of("subreaper")
        chdir(folder)
        umask(0o077)
        environ["HOME"] = environ["TMPDIR"] = folder
        if confine is not None:
            confine(folder)
        dup2(protocol, own_protocol, inheritable=False)
        dup2(output, 1)
        dup2(output, 2)
        dup2(null, 0)
        for first, last in gaps:
            close_range(first, last)
        setrlimit(cpu_kind, cpu)
        setrlimit(files_kind, open_files)
        if filter_calls is not None:
            filter_calls()

    return enter


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
    syscalls.call("unshare", syscalls.CLONE_NEWIPC)
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
