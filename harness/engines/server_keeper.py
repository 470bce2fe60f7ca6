"""The keeper of a server: a process that ends with everything below the server.

It starts the server, tells on stdout how that went and how the server ended, and lets
go only when nothing of it is left. Its stdin is a leash: when the evaluator closes it,
or dies in any way, the server is asked to end and killed after a bounded wait. Were the
keeper killed itself, the kernel would kill the server. Standard library only, so that
it starts fast; run as `main(stop_timeout_s, log, command...)`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from oracle_workers import processes, syscalls

STARTED = "started"
FAILED = "failed"
ENDED = "ended"


class _Asked(Exception):  # noqa: N818 (a request, not a fault)
    """A signal asks the keeper to end."""


def main(argv: Sequence[str]) -> None:
    """Keep one server; returns when nothing of it is left."""
    stop_timeout_s, log, *command = argv
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    try:
        server = _start(command, log)
        if server is not None:
            _keep(server, float(stop_timeout_s))
    except _Asked:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.kill_descendants()


def _leave(_signal: int, _frame: object) -> NoReturn:
    raise _Asked


def _start(command: Sequence[str], log: str) -> subprocess.Popen[bytes] | None:
    keeper = os.getpid()
    try:
        with open(log, "ab") as stream:  # noqa: PTH123 (starts without pathlib)
            server = subprocess.Popen(  # noqa: S603 (the operator's own command)
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _die_with(keeper),  # noqa: PLW1509 (one thread)
            )
    except OSError as error:
        _report(FAILED, str(error))
        return None
    _report(STARTED, server.pid)
    return server


def _die_with(keeper: int) -> None:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os.kill(os.getpid(), signal.SIGKILL)


def _keep(server: subprocess.Popen[bytes], stop_timeout_s: float) -> None:
    """Wait for the server's end or the leash's, and end the server then."""
    handle = os.pidfd_open(server.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(sys.stdin.fileno(), select.POLLIN)
    try:
        ended = {descriptor for descriptor, _ in poll.poll()}
    except _Asked:
        ended = set()
    if handle not in ended:
        poll.unregister(sys.stdin.fileno())
        server.terminate()
        poll.poll(stop_timeout_s * 1000)
    status = server.poll()
    _report(ENDED, status)


def _report(event: str, value: object) -> None:
    line = json.dumps({event: value}) + "\n"
    try:
        os.write(sys.stdout.fileno(), line.encode())
    except BrokenPipeError:
        # The evaluator is gone; nobody reads how the server ended.
        return
