"""The relay: the one way out of a contained worker that speaks to an endpoint.

It is a process without pack code and without secrets, forked by the keeper outside
of all namespaces. A worker sends it one end of a socket pair and gets back a TCP
connection to the one address that the relay was started with; it takes no address
from anybody. Workers themselves cannot make, connect or bind a socket. At `confined`
and above the kernel holds the relay to the address's port and to name lookups.
"""

from __future__ import annotations

import array
import os
import signal
import socket
from typing import Any, NamedTuple, NoReturn, TypedDict

from oracle_workers import contain, landlock, plain_json, seccomp, syscalls
from oracle_workers.contain import UnavailableError

LOOKUP_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
)
"""What name lookups read; beside it the relay reads the interpreter alone."""

_DNS_PORT = 53
_REQUEST = b"connect"
_PACKET_SIZE = 1 << 12
_ONE_DESCRIPTOR = socket.CMSG_SPACE(array.array("i").itemsize)


class RelayError(Exception):
    """No connection came; the text says why."""


class Destination(TypedDict):
    """Where the relay leads, and how long it tries."""

    host: str
    port: int
    timeout_s: float
    readable: list[str]
    """The interpreter's folders, for `confined` and above."""


class Relay(NamedTuple):
    """A started relay: its process, and the workers' end of the line to it."""

    pid: int
    line: socket.socket


def start(destination: Destination, level: str) -> Relay:
    """Fork the relay and wait until it is contained; raise UnavailableError."""
    line, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            line.close()
            _serve(far_end, destination, level, parent)
        finally:
            os._exit(70)
    far_end.close()
    answer = line.recv(_PACKET_SIZE)
    found: dict[str, Any] = plain_json.decode(answer) if answer else {}
    if found.get("ready"):
        return Relay(pid, line)
    line.close()
    raise UnavailableError(
        found.get("missing", "relay"), found.get("detail", "it ended at its start")
    )


def connect(line: int, timeout_s: float) -> socket.socket:
    """Ask the relay behind descriptor `line` for a connection; raise RelayError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            _send(line, _REQUEST, theirs.fileno())
        ours.settimeout(timeout_s)
        try:
            words, ancillary, _, _ = ours.recvmsg(_PACKET_SIZE, _ONE_DESCRIPTOR)
        except OSError as error:
            raise RelayError(f"the relay does not answer: {error}") from None
    for descriptor in _descriptors(ancillary):
        return socket.socket(fileno=descriptor)
    raise RelayError(words.decode("utf-8", "replace") or "the relay is gone")


def _send(line: int, words: bytes, descriptor: int) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    door = socket.socket(fileno=line)
    try:
        door.sendmsg([words], rights, socket.MSG_NOSIGNAL)
    except OSError as error:
        raise RelayError(f"the relay is gone: {error}") from None
    finally:
        door.detach()


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> array.array[int]:
    found = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(content)
    return found


def _serve(
    line: socket.socket, destination: Destination, level: str, parent: int
) -> NoReturn:
    try:
        _contain(line, destination, level, parent)
    except UnavailableError as error:
        line.send(plain_json.encode({"missing": error.missing, "detail": error.detail}))
        os._exit(0)
    line.send(plain_json.encode({"ready": True}))
    while True:
        words, ancillary, _, _ = line.recvmsg(_PACKET_SIZE, _ONE_DESCRIPTOR)
        if not words:
            os._exit(0)
        for descriptor in _descriptors(ancillary):
            # A process for each, so that no connection waits for another.
            if os.fork() == 0:
                try:
                    line.close()
                    _answer(socket.socket(fileno=descriptor), destination)
                finally:
                    os._exit(0)
            os.close(descriptor)


def _contain(
    line: socket.socket, destination: Destination, level: str, parent: int
) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    syscalls.close_all_but({0, 1, 2, line.fileno()})
    contain.die_with_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    if level == "process":
        return
    readable = [*destination["readable"], *LOOKUP_FILES]
    try:
        landlock.restrict(readable, None, (destination["port"], _DNS_PORT))
    except landlock.LandlockError as error:
        raise UnavailableError("landlock", str(error)) from None
    try:
        seccomp.install(seccomp.RELAY)
    except seccomp.SeccompError as error:
        raise UnavailableError("seccomp", str(error)) from None


def _answer(asker: socket.socket, destination: Destination) -> None:
    address = destination["host"], destination["port"]
    try:
        reached = socket.create_connection(address, destination["timeout_s"])
    except OSError as error:
        asker.send(f"no connection: {error.strerror or error}".encode())
        return
    reached.setblocking(True)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _send(asker.fileno(), b"connected", reached.fileno())
