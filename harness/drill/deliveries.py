"""Ways to put an answer on the wire, whole and broken.

Each takes what is to be said and returns a `Delivery` for the loopback server. None
of them decides anything: which request gets which is the schedule's.
"""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketStream

from harness.candidates.loopback_http import Delivery

SERVER_NAME: Final = "fairtrial-drill"
DRIP_PAUSE_S: Final = 0.1
_NO_LINGER: Final = struct.pack("ii", 1, 0)


def head(
    status: int, length: int | None, headers: Mapping[str, str] | None = None
) -> bytes:
    """Return a response head; `length` None leaves the framing to `headers`."""
    fields = {"server": SERVER_NAME, "content-type": "application/json"}
    fields |= headers or {}
    if length is not None:
        fields["content-length"] = str(length)
    known = {entry.value: entry.phrase for entry in HTTPStatus}
    lines = [f"HTTP/1.1 {status} {known.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def whole(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Delivery:
    """Send one complete response."""
    return exactly(head(status, len(body), headers) + body)


def exactly(data: bytes) -> Delivery:
    """Send these bytes and keep the connection."""

    async def deliver(stream: SocketStream) -> bool:
        await stream.send(data)
        return True

    return deliver


def late(body: bytes, pause_s: float) -> Delivery:
    """Send one complete response after a pause."""

    async def deliver(stream: SocketStream) -> bool:
        await anyio.sleep(pause_s)
        return await whole(body)(stream)

    return deliver


def closed(data: bytes = b"") -> Delivery:
    """Send some bytes, then close in order."""

    async def deliver(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        return False

    return deliver


def reset(data: bytes = b"") -> Delivery:
    """Send some bytes, then let the connection be reset."""

    async def deliver(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 (not a query)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        return False

    return deliver


def half_closed(data: bytes = b"") -> Delivery:
    """Send some bytes and the end of the stream, and go on listening."""

    async def deliver(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        await stream.send_eof()
        await _until_gone(stream)
        return False

    return deliver


def silent(data: bytes = b"") -> Delivery:
    """Send some bytes, then nothing more for as long as the client waits."""

    async def deliver(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        await _until_gone(stream)
        return False

    return deliver


def dripping(data: bytes, after: bytes = b"") -> Delivery:
    """Send one byte after the other, slower than any deadline allows.

    What comes before the slow part is sent at once.
    """

    async def deliver(stream: SocketStream) -> bool:
        if after:
            await stream.send(after)
        for position in range(len(data)):
            await stream.send(data[position : position + 1])
            await anyio.sleep(DRIP_PAUSE_S)
        return False

    return deliver


def cut_length(body: bytes) -> bytes:
    """Return a response that promises more bytes than it has."""
    return head(200, len(body)) + body[: len(body) // 2]


def cut_chunks(body: bytes) -> bytes:
    """Return a chunked response without its last chunk."""
    framing = {"transfer-encoding": "chunked"}
    return head(200, None, framing) + b"%x\r\n%s\r\n" % (len(body), body)


def in_chunks(body: bytes) -> bytes:
    """Return a whole chunked response."""
    return cut_chunks(body) + b"0\r\n\r\n"


def in_gzip(body: bytes) -> bytes:
    """Return a whole response with a gzip body."""
    packed = gzip.compress(body, mtime=0)
    return head(200, len(packed), {"content-encoding": "gzip"}) + packed


def cut_gzip(body: bytes) -> bytes:
    """Return a response with honest framing around a cut gzip stream."""
    packed = gzip.compress(body, mtime=0)
    piece = packed[: len(packed) * 2 // 3]
    return head(200, len(piece), {"content-encoding": "gzip"}) + piece


async def _until_gone(stream: SocketStream) -> None:
    with suppress(anyio.EndOfStream):
        while True:
            await stream.receive()
