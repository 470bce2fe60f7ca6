"""The evaluator's end of a worker: frames in and out, captured output, its end.

One epoll set holds the protocol socket, the output pipe and the worker's pidfd, and
is itself a descriptor, so one wait covers all three without a task group. Nothing
here blocks, and what arrives is bytes: decoding is strict and done elsewhere.
"""

from __future__ import annotations

import array
import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from oracle_workers.frames import HEADER_SIZE, announced_size, frame

OUTPUT_KEPT_BYTES = 64 << 10
_PIECE = 1 << 16
_PIPE_PIECES = 17
"""Enough for the largest pipe that an ordinary user can have (1 MiB)."""
_CREDENTIALS = struct.Struct("=iII")


class ChannelEndedError(Exception):
    """The worker ended or closed its protocol."""


class OversizeError(Exception):
    """The worker announced a frame beyond the cap."""


class CapturedOutput:
    """What a worker printed: the first bytes, and how many there were."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.total_bytes = 0

    def add(self, piece: bytes) -> None:
        """Keep the piece as far as the cap allows."""
        self.total_bytes += len(piece)
        self._kept += piece[: OUTPUT_KEPT_BYTES - len(self._kept)]

    @property
    def text(self) -> str:
        """The kept bytes as text; broken UTF-8 is shown as replacement marks."""
        return self._kept.decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """Whether something was thrown away."""
        return self.total_bytes > len(self._kept)


class Channel:
    """One worker's socket, output and process handle."""

    def __init__(self, *, cap: int) -> None:
        self._cap = cap
        self._socket, self._worker_socket = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_STREAM
        )
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._output, self._worker_output = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._worker_output, True)
        self._epoll = select.epoll()
        self._awaited = select.EPOLLIN
        self._epoll.register(self._socket, self._awaited)
        self._epoll.register(self._output, select.EPOLLIN)
        self._output_open = True
        self._received = bytearray()
        self._to_send = memoryview(b"")
        self.output = CapturedOutput()
        self.pid = 0
        """The worker's process id here; 0 until it was born."""
        self.handle: int | None = None
        """The worker's pidfd, owned by this channel."""
        self._ended = False

    @contextmanager
    def worker_ends(self) -> Iterator[array.array[int]]:
        """Lend out the worker's two descriptors; they are closed here afterwards."""
        try:
            yield array.array("i", [self._worker_socket.fileno(), self._worker_output])
        finally:
            self._worker_socket.close()
            os.close(self._worker_output)

    async def exchange(self, request: bytes) -> bytes:
        """Send one request and return the reply's payload.

        Raises ChannelEndedError and OversizeError; the caller holds the deadline.
        """
        self.post(request)
        return await self.receive()

    def post(self, request: bytes) -> None:
        """Send one request as far as the socket takes it; `receive` sends the rest."""
        self._to_send = memoryview(frame(request))
        self._send()

    def read_already(self) -> bytes | None:
        """Return the next frame's payload if it came with an earlier one."""
        try:
            return self._take_frame()
        except OversizeError:
            # `receive` will say so.
            return None

    def seen_late(self) -> bytes | None:
        """Return the next frame's payload if it has come whole, without waiting."""
        self._collect()
        return self.read_already()

    async def receive(self) -> bytes:
        """Return the next frame's payload."""
        while True:
            self._send()
            reply = self._take_frame()
            if reply is not None:
                return reply
            if self._ended:
                raise ChannelEndedError
            mask = select.EPOLLIN | (select.EPOLLOUT if self._to_send else 0)
            if mask != self._awaited:
                self._epoll.modify(self._socket, mask)
                self._awaited = mask
            await anyio.wait_readable(self._epoll.fileno())
            self._collect()

    def _send(self) -> None:
        try:
            while self._to_send:
                sent = self._socket.send(self._to_send, socket.MSG_NOSIGNAL)
                self._to_send = self._to_send[sent:]
        except BlockingIOError:
            return
        except OSError:
            self._to_send = memoryview(b"")
            self._ended = True

    def _take_frame(self) -> bytes | None:
        if len(self._received) < HEADER_SIZE:
            return None
        size = announced_size(self._received)
        if size > self._cap:
            raise OversizeError(f"{size} bytes, at most {self._cap} are accepted")
        end = HEADER_SIZE + size
        if len(self._received) < end:
            return None
        payload = bytes(self._received[HEADER_SIZE:end])
        del self._received[:end]
        return payload

    def _collect(self) -> None:
        for descriptor, _ in self._epoll.poll(0):
            if descriptor == self._output:
                self.drain_output()
            elif descriptor == self.handle:
                # What it still managed to send comes before its end.
                while self._receive_some():
                    pass
                self._ended = True
            else:
                self._receive_some()

    def _receive_some(self) -> bool:
        try:
            piece = self._receive_piece()
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        self._received += piece
        self._ended = self._ended or not piece
        return bool(piece)

    def _receive_piece(self) -> bytes:
        if self.pid:
            return self._socket.recv(_PIECE)
        piece, ancillary, _, _ = self._socket.recvmsg(
            _PIECE, socket.CMSG_SPACE(_CREDENTIALS.size)
        )
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                self._meet(_CREDENTIALS.unpack(content)[0])
        return piece

    def _meet(self, pid: int) -> None:
        if pid <= 0:
            return
        try:
            self.handle = os.pidfd_open(pid)
        except OSError:
            self._ended = True
            return
        self.pid = pid
        self._epoll.register(self.handle, select.EPOLLIN)

    def drain_output(self, pieces: int = 1) -> None:
        """Take some of what the worker printed so far, without waiting."""
        # Bounded, since a worker may print faster than anyone can read.
        for _ in range(pieces):
            if not self._output_open:
                return
            try:
                piece = os.read(self._output, _PIECE)
            except BlockingIOError:
                return
            if not piece:
                self._output_open = False
                self._epoll.unregister(self._output)
            self.output.add(piece)

    def finish_sending(self) -> None:
        """Let the worker see the end of its requests, and read its last answer."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            # Ended on the other side already.
            return

    def close(self) -> None:
        """Close every descriptor; the worker sees the end of its protocol."""
        self.drain_output(_PIPE_PIECES)
        self._epoll.close()
        self._socket.close()
        os.close(self._output)
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None
