"""The keeper: a process without pack code that outlives nothing it started.

It forks the pack host, waits for the host's end or for the evaluator to let go of the
leash, whichever comes first, and then kills everything below itself. Being a child
subreaper, it finds what daemonised itself; at `namespaces` the host is the first
process of its own process namespace, and the kernel does the same once more.
A host that leads to an endpoint has a relay beside it, and is given a moment at the
end, so that its workers can delete their sessions there.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from typing import Any

from oracle_workers import host, namespaces, plain_json, syscalls
from oracle_workers.contain import RELAY_DESCRIPTOR, Containment, UnavailableError
from oracle_workers.folders import remove_tree
from oracle_workers.processes import kill_descendants

PACKET_SIZE = 1 << 17
"""Largest message on leash and door, in bytes."""


def main(argv: list[str]) -> None:
    """Run as the keeper; does not return."""
    sys.path.remove(argv[1])
    sys.dont_write_bytecode = True
    leash = socket.socket(fileno=int(argv[2]))
    door = socket.socket(fileno=int(argv[3]))
    syscalls.close_all_but({0, 1, 2, leash.fileno(), door.fileno()})
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    request = leash.recv(PACKET_SIZE)
    if not request:
        os._exit(0)
    config: dict[str, Any] = plain_json.decode(request)
    pids = _start_relay(door, config) if "relay" in config else []
    pids.append(_fork_host(leash, door, config))
    door.close()
    if "relay" in config:
        os.close(RELAY_DESCRIPTOR)
    _wait(leash, pids, config.get("grace_s", 0))
    _end(config["containment"]["scratch"])


def _start_relay(door: socket.socket, config: dict[str, Any]) -> list[int]:
    """Start the relay and leave the line to it where the host expects it."""
    # Only here: no other host needs it, and a worker pays for what its host holds.
    from oracle_workers import relay

    try:
        started = relay.start(config["relay"], config["containment"]["level"])
    except UnavailableError as error:
        host.report_refusal(door, error)
        os._exit(0)
    os.dup2(started.line.fileno(), RELAY_DESCRIPTOR, inheritable=False)
    started.line.close()
    return [started.pid]


def _fork_host(
    leash: socket.socket, door: socket.socket, config: dict[str, Any]
) -> int:
    containment: Containment = config["containment"]
    entered: list[str] = []
    if containment["level"] == "namespaces":
        try:
            entered = namespaces.enter()
        except UnavailableError as error:
            host.report_refusal(door, error)
            os._exit(0)
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            leash.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            host.serve(door, config, 0 if entered else keeper, entered)
        finally:
            os._exit(70)
    return pid


def _wait(leash: socket.socket, pids: list[int], grace_s: float) -> None:
    """Wait for the first end of a process; without the evaluator only so long."""
    poll = select.poll()
    for pid in pids:
        poll.register(os.pidfd_open(pid), select.POLLIN)
    poll.register(leash, select.POLLIN)
    ended = {descriptor for descriptor, _ in poll.poll()}
    if ended == {leash.fileno()}:
        poll.unregister(leash)
        poll.poll(grace_s * 1000)


def _leave(_signal: int, _frame: object) -> None:
    _end(None)


def _end(scratch: str | None) -> None:
    try:
        kill_descendants()
        if scratch is not None:
            # The evaluator does this too, unless it was killed.
            remove_tree(scratch)
    finally:
        os._exit(0)
