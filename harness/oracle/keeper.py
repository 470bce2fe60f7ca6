"""The evaluator's hold on one keeper process and, through its door, on the pack host.

Letting go of the leash makes the keeper kill everything below it and end; a keeper
that does not is killed, and then its orphans come to this process.
"""

from __future__ import annotations

import array
import os
import select
import signal
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import anyio

from harness.canonical import Json
from harness.oracle import launch, orphans
from harness.strict_json import StrictJsonError, decode_document
from oracle_workers.processes import children

if TYPE_CHECKING:
    from multiprocess.process import BaseProcess

_PACKET_SIZE = 1 << 17
_END_PATIENCE_S = 6.0
_STATUS_PATIENCE_S = 0.2
_STATUSES_KEPT = 1000
_LIVING: set[int] = set()
"""Keepers that this process has running."""


class KeeperGoneError(Exception):
    """The host closed its door: it has ended."""


class Keeper:
    """Leash, door and process of one keeper."""

    def __init__(self, leash: socket.socket, door: socket.socket) -> None:
        leash.setblocking(False)
        door.setblocking(False)
        self._leash = leash
        self._door = door
        self._process: BaseProcess | None = None
        self._handle = -1
        self.pid = 0
        self.below: set[int] = set()
        """Process ids of the host and of its workers, as far as they are known."""
        self._door_closed = False
        self._door_lock = anyio.Lock()
        self._exit_statuses: dict[int, int] = {}

    def spawn(self, leash_end: socket.socket, door_end: socket.socket) -> None:
        """Start the process with its ends of the two sockets."""
        self._process = launch.spawn_keeper(leash_end, door_end)
        self.pid = self._process.pid or 0
        _LIVING.add(self.pid)
        self._handle = os.pidfd_open(self.pid)

    def configure(self, config: bytes) -> None:
        """Send the one message that a keeper waits for."""
        self._leash.send(config, socket.MSG_NOSIGNAL)

    async def ask(self, request: bytes, descriptors: array.array[int]) -> None:
        """Send one packet with descriptors through the door.

        A door that is closed is found out by whoever waits for the answer.
        """
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        while not self._door_closed:
            try:
                self._door.sendmsg([request], rights, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                await anyio.wait_writable(self._door)
            except OSError:
                return
            else:
                return

    async def message(self) -> dict[str, Json]:
        """Wait for the next message of the host; raises KeeperGoneError."""
        while True:
            for message in self.messages():
                self.below.update(children(self.pid))
                return message
            if self._door_closed:
                raise KeeperGoneError
            await anyio.wait_readable(self._door)

    async def exit_status_of(self, session: int) -> int | None:
        """Return how a worker ended, negative for a signal; None if nobody says."""
        with anyio.move_on_after(_STATUS_PATIENCE_S):
            async with self._door_lock:
                while session not in self._exit_statuses and not self._door_closed:
                    await anyio.wait_readable(self._door)
                    self.note_exits()
        return self._exit_statuses.pop(session, None)

    def note_exits(self) -> None:
        """Take in which workers ended, so that the door does not fill up."""
        for message in self.messages():
            session, status = message.get("session"), message.get("status")
            if isinstance(session, int) and isinstance(status, int):
                self._exit_statuses[session] = status
        while len(self._exit_statuses) > _STATUSES_KEPT:
            self._exit_statuses.pop(next(iter(self._exit_statuses)))

    def messages(self) -> Iterator[dict[str, Json]]:
        """Yield the messages of the host that have arrived, one by one."""
        while not self._door_closed:
            try:
                packet = self._door.recv(_PACKET_SIZE)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._door_closed = True
                return
            try:
                message = decode_document(packet)
            except StrictJsonError:
                continue
            if isinstance(message, dict):
                yield message

    def is_alive(self) -> bool:
        """Tell whether the process runs and still holds the leash."""
        if self._process is None or self._door_closed:
            return False
        poll = select.poll()
        poll.register(self._leash, 0)
        poll.register(self._door, 0)
        return not poll.poll(0)

    async def end(self) -> None:
        """End the keeper and everything below it; safe to repeat."""
        process = self._process
        if process is None:
            return
        self._process = None
        self._leash.close()
        self._door.close()
        self._door_closed = True
        gone = False
        try:
            with anyio.move_on_after(_END_PATIENCE_S, shield=True):
                await anyio.wait_readable(self._handle)
                gone = True
        finally:
            # It had its time, or an interrupt came through the shield.
            if not gone:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            os.close(self._handle)
            process.join()
            process.close()
            _LIVING.discard(self.pid)
            orphans.end(self.below, _LIVING)
