"""The pack host: imports a pack once, then forks one worker for each task attempt.

It runs pack code and is therefore contained before it imports any, trusted by nobody,
and single-threaded, because it forks. It answers the door (one packet asks for one
worker and brings the worker's protocol socket and output pipe), reaps workers, and
kills whatever daemonised itself away from a dead one. A host of an endpoint imports
no pack code at all, and when the evaluator is gone it waits for its workers, which
delete their sessions.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from oracle_workers import (
    birth,
    contain,
    loop,
    namespaces,
    plain_json,
    rehearsal,
    session,
    syscalls,
)
from oracle_workers.contain import Containment, UnavailableError
from oracle_workers.python_backend import PackBrokenError, PythonPack, describe_error

Serve = Callable[[dict[str, Any]], NoReturn]
"""From a session's context to the end of its worker."""

_PACKET_SIZE = 1 << 17
_STRAY_POLL_MS = 10
_IMPORT_ROUNDS = 1000
_TWO_DESCRIPTORS = socket.CMSG_SPACE(2 * struct.calcsize("i"))
_FIRST = 1
"""The process id of a namespace's first process."""

# Bound before any pack is imported, which may replace them in their modules.
_fork = os.fork
_exit = os._exit
_waitpid = os.waitpid
_kill = os.kill
_close = os.close
_pidfd_open = os.pidfd_open
_pread = os.pread


def serve(
    door: socket.socket, config: dict[str, Any], keeper: int, entered: list[str]
) -> None:
    """Run as the pack host; does not return.

    `keeper` is the parent's process id, 0 in an own process namespace; `entered` names
    the namespaces around this process.
    """
    os.setsid()
    wanted: Containment = config["containment"]
    own = namespaces.own_process_namespace() if entered else -1
    kin = os.open("/proc/thread-self/children", os.O_RDONLY | os.O_CLOEXEC)
    _enter_own_folder(config)
    try:
        applied = contain.contain_host(wanted)
    except UnavailableError as error:
        report_refusal(door, error)
        _exit(0)
    except OSError as error:
        report_refusal(door, UnavailableError("containment", str(error)))
        _exit(0)
    if entered:
        applied["namespaces"] = entered
    contain.die_with_parent(keeper)
    _report(door, {"stage": "contained", "applied": applied})
    serve_session = _import(door, config)
    _report(door, {"stage": "ready"})
    _Host(door, config, serve_session, own, kin).run()


def report_refusal(door: socket.socket, error: UnavailableError) -> None:
    """Tell the evaluator which piece of the level is missing."""
    _report(
        door, {"stage": "refused", "missing": error.missing, "detail": error.detail}
    )


def _enter_own_folder(config: dict[str, Any]) -> None:
    folder = config["folder"]
    os.chdir(folder)
    os.environ["HOME"] = os.environ["TMPDIR"] = folder
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def _report(door: socket.socket, message: dict[str, Any]) -> None:
    door.send(plain_json.encode(message))


def _import(door: socket.socket, config: dict[str, Any]) -> Serve:
    """Return what a worker runs, with all imported that workers share."""
    try:
        serve = _prepare(config)
        _require_one_thread()
        loop.flush_output()
    except BaseException as error:  # noqa: BLE001 - pack code may raise anything
        _report(door, {"stage": "broken", "detail": describe_error(error)})
        _exit(0)
    return serve


def _prepare(config: dict[str, Any]) -> Serve:
    paths = config["pack"]
    if "endpoint" in paths:
        # Only here, because it brings the whole of TLS with it.
        from oracle_workers import http_backend, http_session

        return partial(http_session.run, http_backend.HttpPack.load(paths))
    alone = config["mode"] == "per_task"
    pack = None if alone else PythonPack.load(paths)
    rehearsal.run()
    return partial(session.run, config, pack)


def _require_one_thread() -> None:
    import sys

    if len(sys._current_frames()) > 1:
        raise PackBrokenError(
            "the pack starts a thread while it is imported, and a process with "
            "threads cannot be forked safely: start it in a call that needs it"
        )


class _Host:
    def __init__(
        self,
        door: socket.socket,
        config: dict[str, Any],
        serve: Serve,
        own_namespace: int,
        kin: int,
    ) -> None:
        self._door = door
        self._config = config
        self._serve = serve
        self._own_namespace = own_namespace
        self._kin = kin
        self._pid = os.getpid()
        self._enter = birth.prepare(
            config["containment"], 0 if own_namespace >= 0 else self._pid
        )
        self._workers: dict[int, tuple[int, int]] = {}
        """Worker ids and session numbers by pidfd."""
        self._strays = False
        """Whether there may be children that are no workers."""
        self._leaving = False
        self._poll = select.poll()
        self._poll.register(door.fileno(), select.POLLIN)
        self._receive = door.recvmsg
        self._send = door.send

    def run(self) -> None:
        gc.collect()
        gc.freeze()
        syscalls.release_free_memory()
        self._end_what_the_import_left()
        door = self._door.fileno()
        while self._workers or not self._leaving:
            for descriptor, _ in self._poll.poll(
                _STRAY_POLL_MS if self._strays else None
            ):
                if descriptor == door:
                    self._answer_door()
                else:
                    self._bury(descriptor)
                    # A worker's own process namespace ends all of them with it.
                    self._strays = self._own_namespace < 0
            if self._strays:
                self._end_strays()
        _exit(0)

    def _answer_door(self) -> None:
        try:
            data, ancillary, _, _ = self._receive(_PACKET_SIZE, _TWO_DESCRIPTORS)
        except ConnectionResetError:
            # An evaluator that was killed leaves what it had not read yet.
            data = b""
        if not data:
            self._leave()
            return
        descriptors: list[int] = []
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors += memoryview(content).cast("i")
        request = plain_json.decode_canonical(data)
        try:
            self._open(request, descriptors[0], descriptors[1])
        except OSError as error:
            self._tell({"session": request["session"], "refused": str(error)})
        finally:
            for descriptor in descriptors:
                _close(descriptor)

    def _leave(self) -> None:
        """The evaluator is gone: end, but let workers delete what they have open."""
        if not self._config["containment"]["relayed"]:
            _exit(0)
        self._poll.unregister(self._door.fileno())
        self._leaving = True

    def _open(self, request: dict[str, Any], protocol: int, output: int) -> None:
        apart = self._own_namespace >= 0
        pid = namespaces.fork_apart(self._own_namespace) if apart else _fork()
        if pid == 0:
            try:
                self._enter(request["folder"], protocol, output)
                self._serve(request["context"])
            except BaseException as error:  # noqa: BLE001 - the worker's last words
                os.write(2, describe_error(error).encode("utf-8", "replace"))
            finally:
                _exit(70)
        handle = _pidfd_open(pid)
        self._workers[handle] = (pid, request["session"])
        self._poll.register(handle, select.POLLIN)

    def _bury(self, handle: int) -> None:
        self._poll.unregister(handle)
        _close(handle)
        pid, number = self._workers.pop(handle)
        try:
            _, status = _waitpid(pid, 0)
        except ChildProcessError:
            return
        self._tell({"session": number, "status": os.waitstatus_to_exitcode(status)})

    def _end_what_the_import_left(self) -> None:
        """Kill and reap everything below this process, which has no worker yet."""
        if self._own_namespace < 0:
            for _ in range(_IMPORT_ROUNDS):
                self._end_strays()
                if not self._strays:
                    return
            return
        if self._pid == _FIRST:
            # All but the caller, in a process namespace that nobody else lives in.
            with contextlib.suppress(ProcessLookupError):
                _kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while _waitpid(-1, 0):
                pass

    def _end_strays(self) -> None:
        """Kill and reap children that are no workers: they came from dead ones."""
        known = {pid for pid, _ in self._workers.values()}
        found = {int(pid) for pid in _pread(self._kin, _PACKET_SIZE, 0).split()}
        for stray in found - known:
            try:
                _kill(stray, signal.SIGKILL)
                _waitpid(stray, os.WNOHANG)
            except OSError:
                # Gone already; one that may not be killed stays the keeper's.
                continue
        self._strays = bool(found - known)

    def _tell(self, message: dict[str, Any]) -> None:
        # How a worker ended is a diagnostic: an evaluator that is not listening
        # must not hold up the next worker.
        try:
            self._send(plain_json.encode(message), socket.MSG_DONTWAIT)
        except OSError:
            return
