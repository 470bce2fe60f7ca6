"""A small HTTP/1.1 server for JSON over loopback: raw bytes on anyio streams.

It serves control candidates and nothing else, so it knows what they need: keep-alive,
bodies by length or in chunks, `Expect: 100-continue`, caps on every size and named
deadlines on every wait. A request that breaks the protocol gets an OpenAI-style error
and a closed connection. Responses carry no date, so the same answer is the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.stapled import MultiListener

from harness.candidates.control import Response, refusal
from harness.canonical import canonical_bytes

LOOPBACK: Final = "127.0.0.1"
HEAD_LIMIT_BYTES: Final = 64 * 1024
BODY_LIMIT_BYTES: Final = 16 * 1024 * 1024
IDLE_TIMEOUT_S: Final = 300.0
"""How long a kept connection may wait for its next request."""
READ_TIMEOUT_S: Final = 30.0
"""How long the rest of a started request may take."""
WRITE_TIMEOUT_S: Final = 30.0

_REQUEST_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.([01])")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, its body whole."""

    method: str
    path: str
    """Without the query."""
    body: bytes


SocketStreamListener = MultiListener[SocketStream]
Delivery = Callable[[SocketStream], Awaitable[bool]]
"""Sends an answer in its own way; returns whether the connection may be kept."""
Handler = Callable[[Request], Response | Delivery]


class _ProtocolError(Exception):
    """The connection carries no request that can be read; `response` says why."""

    def __init__(self, status: int, message: str) -> None:
        self.response = refusal(status, message)
        super().__init__(message)


async def listen(port: int) -> SocketStreamListener:
    """Listen on loopback; port 0 takes a free one. Raises OSError."""
    return await anyio.create_tcp_listener(local_host=LOOPBACK, local_port=port)


def port_of(listener: SocketStreamListener) -> int:
    """Return the port that a listener got."""
    port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610 (not a query)
    return port


async def serve(listener: SocketStreamListener, handler: Handler) -> None:
    """Answer requests until cancelled."""

    async def connection(stream: SocketStream) -> None:
        async with stream:
            try:
                await _Connection(stream, handler).serve()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
                return

    await listener.serve(connection)


class _Connection:
    """One connection: requests in, responses out, in order."""

    def __init__(self, stream: SocketStream, handler: Handler) -> None:
        self._stream = stream
        self._buffer = BufferedByteReceiveStream(stream)
        self._handler = handler

    async def serve(self) -> None:
        keep_alive = True
        while keep_alive:
            try:
                head = await self._head()
                if head is None:
                    return
                keep_alive = head.keeps_alive
                with anyio.fail_after(READ_TIMEOUT_S):
                    body = await self._body(head)
                request = Request(head.method, head.path, body)
                response: Response | Delivery = self._handler(request)
            except TimeoutError:
                keep_alive = False
                response = refusal(408, "the request body did not arrive in time")
            except _ProtocolError as error:
                keep_alive, response = False, error.response
            except anyio.IncompleteRead:
                return
            if isinstance(response, Response):
                await self._send(response, keep_alive=keep_alive)
            else:
                keep_alive = await response(self._stream) and keep_alive

    async def _head(self) -> _Head | None:
        """Read a request's head; None when the client is done."""
        with anyio.move_on_after(IDLE_TIMEOUT_S) as idle:
            try:
                data = await self._buffer.receive_until(b"\r\n\r\n", HEAD_LIMIT_BYTES)
            except (anyio.IncompleteRead, anyio.EndOfStream):
                return None
            except anyio.DelimiterNotFound:
                raise _ProtocolError(431, "the request head is too long") from None
        return None if idle.cancelled_caught else _parse_head(data)

    async def _body(self, head: _Head) -> bytes:
        if head.expects_continue:
            await self._stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if head.is_chunked:
            return await self._chunks()
        if head.length > BODY_LIMIT_BYTES:
            raise _ProtocolError(413, "the request body is too large")
        return await self._buffer.receive_exactly(head.length) if head.length else b""

    async def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            match = _CHUNK_SIZE.fullmatch(await self._line())
            if match is None:
                raise _ProtocolError(400, "a chunk has no size")
            size = int(match[1], 16)
            if len(body) + size > BODY_LIMIT_BYTES:
                raise _ProtocolError(413, "the request body is too large")
            if size == 0:
                break
            body += await self._buffer.receive_exactly(size)
            if await self._line():
                raise _ProtocolError(400, "a chunk does not end where it says")
        while await self._line():
            pass
        return bytes(body)

    async def _line(self) -> bytes:
        try:
            return await self._buffer.receive_until(b"\r\n", HEAD_LIMIT_BYTES)
        except anyio.DelimiterNotFound:
            raise _ProtocolError(400, "a line of the body is too long") from None

    async def _send(self, response: Response, *, keep_alive: bool) -> None:
        body = canonical_bytes(response.payload)
        head = (
            f"HTTP/1.1 {response.status} {_REASONS[response.status]}\r\n"
            "server: fairtrial-controls\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n"
            f"connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
        )
        with anyio.fail_after(WRITE_TIMEOUT_S):
            await self._stream.send(head.encode("ascii") + body)


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    keeps_alive: bool
    expects_continue: bool
    is_chunked: bool
    length: int


def _parse_head(data: bytes) -> _Head:
    line, *fields = data.lstrip(b"\r\n").split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise _ProtocolError(400, "the request line is not HTTP/1.1")
    headers: dict[str, str] = {}
    for field in fields:
        name, colon, value = field.partition(b":")
        if not colon or not name or name != name.strip():
            raise _ProtocolError(400, "a header line has no name")
        key = name.decode("latin-1").lower()
        if key == "content-length" and key in headers:
            raise _ProtocolError(400, "content-length is given twice")
        headers[key] = value.strip().decode("latin-1")
    connection = headers.get("connection", "").lower()
    coding = headers.get("transfer-encoding", "").lower()
    if coding not in ("", "chunked") or (coding and "content-length" in headers):
        raise _ProtocolError(400, "the length of the body is ambiguous")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise _ProtocolError(400, "content-length is not a number")
    return _Head(
        method=match[1].decode("ascii"),
        path=match[2].decode("latin-1").partition("?")[0],
        keeps_alive=(
            connection != "close" if match[3] == b"1" else connection == "keep-alive"
        ),
        expects_continue=headers.get("expect", "").lower() == "100-continue",
        is_chunked=coding == "chunked",
        length=int(length),
    )
