"""The filter's instructions, run through a model of the kernel's interpreter."""

import errno
import socket
import struct

import pytest

from oracle_workers import seccomp, syscalls

ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | errno.EPERM
UNKNOWN = 0x00050000 | errno.ENOSYS
KILL = 0x80000000
IGNORE = 0x00050000


def run(code, number, argument=0, second=0, architecture=None):
    """Return what the filter answers to one call."""
    arch = architecture or syscalls.AUDIT_ARCHITECTURES[syscalls.MACHINE]
    data = struct.pack("=IIQQQ", number, arch, 0, argument, second)
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    position, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = steps[position]
        position += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return value
        elif operation == 0x15:
            position += if_true if accumulator == value else if_false
        else:
            assert operation == 0x45
            position += if_true if accumulator & value else if_false


@pytest.fixture(params=sorted(syscalls.AUDIT_ARCHITECTURES))
def machine(request, monkeypatch):
    monkeypatch.setattr(syscalls, "MACHINE", request.param)
    return request.param


def test_denied_calls_are_refused_and_others_allowed(machine):
    code = seccomp.program(seccomp.CONFINED)
    denied = {syscalls.number(name) for name in seccomp.CONFINED} - {None}
    special = {
        syscalls.number(name)
        for name in ("clone", "clone3", "socketpair", "ioprio_set")
    }

    answers = {number: run(code, number) for number in range(500)}

    assert {n for n, answer in answers.items() if answer == REFUSE} - special == denied
    ignored = {n for n, answer in answers.items() if answer == IGNORE}
    others = set(range(500)) - denied - special - ignored
    assert ignored == {syscalls.number(name) for name in seccomp.IGNORED} - {None}
    assert {answers[n] for n in others} == {ALLOW}


def test_clone_may_not_make_namespaces(machine):
    code = seccomp.program(seccomp.CONFINED)
    clone = syscalls.number("clone")

    assert run(code, clone, 17) == ALLOW
    assert run(code, clone, 0x003D0F00) == ALLOW
    for flag in (syscalls.CLONE_NEWUSER, syscalls.CLONE_NEWNET, syscalls.CLONE_NEWPID):
        assert run(code, clone, flag | 17) == REFUSE
    assert run(code, syscalls.number("clone3")) == UNKNOWN


@pytest.mark.parametrize(
    ("family", "kind", "answer"),
    [
        (socket.AF_UNIX, socket.SOCK_STREAM, ALLOW),
        (socket.AF_UNIX, socket.SOCK_SEQPACKET, ALLOW),
        (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, ALLOW),
        (socket.AF_UNIX, socket.SOCK_DGRAM, REFUSE),
        (socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, REFUSE),
        (socket.AF_UNIX, socket.SOCK_RAW, REFUSE),
        (socket.AF_INET, socket.SOCK_STREAM, REFUSE),
        (socket.AF_INET6, socket.SOCK_STREAM, REFUSE),
    ],
)
def test_socketpair_is_for_unix_streams_only(machine, family, kind, answer):
    code = seccomp.program(seccomp.CONFINED)

    assert run(code, syscalls.number("socketpair"), family, kind) == answer


def test_relay_may_reach_out_and_nothing_more(machine):
    code = seccomp.program(seccomp.RELAY)
    names = ("socket", "connect", "bind", "listen", "accept", "accept4", "ptrace")

    answers = [run(code, syscalls.number(name)) for name in names]

    assert answers == [ALLOW] * 3 + [REFUSE] * 4


def test_foreign_architecture_is_killed(machine):
    assert run(seccomp.program(()), 0, architecture=0x40000003) == KILL


def test_x32_calls_are_refused(monkeypatch):
    monkeypatch.setattr(syscalls, "MACHINE", "x86_64")

    assert run(seccomp.program(()), 0x40000000) == REFUSE


def test_unknown_machine_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(syscalls, "MACHINE", "riscv64")

    with pytest.raises(seccomp.SeccompError, match="riscv64"):
        seccomp.program(())


@pytest.mark.parametrize(
    "name",
    [
        "prlimit64",
        "sched_setaffinity",
        "sched_setattr",
        "sched_setparam",
        "sched_setscheduler",
    ],
)
def test_limits_and_processors_can_be_set_for_the_caller_alone(machine, name):
    code = seccomp.program(seccomp.CONFINED)
    number = syscalls.number(name)

    assert run(code, number, 0) == ALLOW
    assert run(code, number, 1234) == REFUSE


@pytest.mark.parametrize(("name", "process"), [("setpriority", 0), ("ioprio_set", 1)])
def test_priorities_can_be_set_for_the_caller_alone(machine, name, process):
    code = seccomp.program(seccomp.CONFINED)
    number = syscalls.number(name)

    assert run(code, number, process, 0) == ALLOW
    assert run(code, number, process, 1234) == REFUSE
    # Kind 2 is everything that a user runs.
    assert run(code, number, 2, 0) == REFUSE
