"""The evaluator's hold on one keeper process and, through its door, on the pack host.

Letting go of the leash makes the keeper kill everything below it and end; a keeper
that does not is killed, and then its orphans come to this process.
"""

from __future__ import annotations

import array
import os
import signal
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import anyio

from harness.canonical import Json
from harness.oracle import launch, orphans
from harness.strict_json import StrictJsonError, decode_document

if TYPE_CHECKING:
    from multiprocess.process import BaseProcess

_PACKET_SIZE = 1 << 17
_END_PATIENCE_S = 6.0


class KeeperGoneError(Exception):
    """The host closed its door: it has ended."""


class Keeper:
    """Leash, door and process of one keeper."""

    def __init__(self, leash: socket.socket, door: socket.socket, token: str) -> None:
        leash.setblocking(False)
        door.setblocking(False)
        self._leash = leash
        self._door = door
        self.token = token
        self._process: BaseProcess | None = None
        self._handle = -1
        self._door_closed = False

    def spawn(self, leash_end: socket.socket, door_end: socket.socket) -> None:
        """Start the process with its ends of the two sockets."""
        self._process = launch.spawn_keeper(leash_end, door_end, self.token)
        self._handle = os.pidfd_open(self._process.pid)

    def configure(self, config: bytes) -> None:
        """Send the one message that a keeper waits for."""
        self._leash.send(config, socket.MSG_NOSIGNAL)

    def ask(self, request: bytes, descriptors: array.array[int]) -> None:
        """Send one packet with descriptors through the door.

        A door that is closed or full is found out by whoever waits for the answer.
        """
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        try:
            self._door.sendmsg([request], rights, socket.MSG_NOSIGNAL)
        except OSError:
            return

    async def message(self) -> dict[str, Json]:
        """Wait for the next message of the host; raises KeeperGoneError."""
        while True:
            for message in self.messages():
                return message
            if self._door_closed:
                raise KeeperGoneError
            await anyio.wait_readable(self._door)

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
        try:
            return self._leash.recv(1) != b""
        except BlockingIOError:
            return self._process.exitcode is None
        except OSError:
            return False

    async def end(self) -> None:
        """End the keeper and everything below it; safe to repeat."""
        process = self._process
        if process is None:
            return
        self._process = None
        self._leash.close()
        self._door.close()
        self._door_closed = True
        try:
            with anyio.move_on_after(_END_PATIENCE_S, shield=True) as patience:
                await anyio.wait_readable(self._handle)
            if patience.cancelled_caught:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
                with anyio.CancelScope(shield=True):
                    await anyio.wait_readable(self._handle)
        finally:
            os.close(self._handle)
            process.join()
            process.close()
            orphans.end(self.token)
