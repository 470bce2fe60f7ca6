"""The HTTP/1.1 transport of candidate traffic, behind httpx's transport interface.

Whole responses only: no streaming, no redirects, no proxies, no cookies. Idle
connections wait in one stack per origin; taking one looks at that one and never at
the others, so the cost of a request does not grow with their number. A connection
that has carried half an exchange is closed and never reused.
"""

from __future__ import annotations

import contextlib
import os
import select
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import anyio
import httpx
from anyio.abc import ByteStream, SocketAttribute

from harness.candidates.http1 import (
    BrokenResponseError,
    NoResponseError,
    OversizeResponseError,
    WireResponse,
    read_response,
)
from harness.candidates.wire import BODY_CAP_BYTES

KEEPALIVE_EXPIRY_S = 5.0
"""Idle connections older than this are closed; common servers wait as long."""


class Origin(NamedTuple):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int


class CutResponse(httpx.RemoteProtocolError):
    """A response that began and did not end as its framing promised."""

    def __init__(self, reason: str, *, status: int | None, partial: bytes) -> None:
        self.status = status
        self.partial = partial
        super().__init__(reason)


class OversizeBody(httpx.RemoteProtocolError):
    """The body passed the cap, so reading stopped."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the body of a {status} is over the cap")


@dataclass(slots=True)
class _Connection:
    stream: ByteStream
    descriptor: int
    is_plain: bool
    """Whether what the descriptor carries are the bytes of the stream."""
    idle_since: float = 0.0

    async def send(self, data: bytes) -> None:
        """Send all bytes; raises anyio.BrokenResourceError."""
        sent = 0
        if self.is_plain:
            # Nothing is waiting in the stream, and the socket mostly takes all at
            # once: then there is nothing to wait for, and the stream would yield.
            try:
                sent = os.write(self.descriptor, data)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                raise anyio.BrokenResourceError from error
        if sent < len(data):
            await self.stream.send(data[sent:])

    def is_quiet(self) -> bool:
        """Tell whether nothing arrived while idle: no close, no stray bytes."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return not poll.poll(0)


class HttpTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 over anyio streams, with its own keep-alive pool."""

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        body_cap_bytes: int = BODY_CAP_BYTES,
        keepalive_expiry_s: float = KEEPALIVE_EXPIRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ssl_context = ssl_context
        self._body_cap_bytes = body_cap_bytes
        self._keepalive_expiry_s = keepalive_expiry_s
        self._clock = clock
        self._idle: dict[Origin, list[_Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return the whole response.

        Raises httpx.ConnectError, CutResponse, OversizeBody or
        httpx.RemoteProtocolError. The caller sets the deadline.
        """
        head = head_of(request.method, request.url, request.headers.raw)
        data = b"%b\r\n%b" % (head, await request.aread())
        found = await self.send(origin_of(request.url), data)
        return httpx.Response(
            found.status,
            headers=list(found.headers),
            stream=httpx.ByteStream(found.body),
            request=request,
        )

    async def send(self, origin: Origin, data: bytes) -> WireResponse:
        """Send the bytes of one request and return the whole response."""
        # A kept connection that dies unanswered is not replaced here: the server may
        # have generated a completion, so a second send is a second attempt and has
        # to be recorded as one.
        connection = await self._take_idle(origin) or await self._connect(origin)
        try:
            return await self._exchange(origin, connection, data)
        except NoResponseError as error:
            raise CutResponse(str(error), status=None, partial=b"") from None

    async def aclose(self) -> None:
        """Close all idle connections."""
        for connections in self._idle.values():
            for connection in connections:
                await connection.stream.aclose()
        self._idle.clear()

    async def _take_idle(self, origin: Origin) -> _Connection | None:
        """Return the youngest idle connection that is still usable, or None."""
        waiting = self._idle.get(origin)
        while waiting:
            connection = waiting.pop()
            is_young = self._clock() - connection.idle_since <= self._keepalive_expiry_s
            if is_young and connection.is_quiet():
                return connection
            await connection.stream.aclose()
        return None

    async def _connect(self, origin: Origin) -> _Connection:
        try:
            if origin.scheme == "https":
                stream: ByteStream = await anyio.connect_tcp(
                    origin.host,
                    origin.port,
                    ssl_context=self._tls(),
                    tls_hostname=origin.host,
                    tls_standard_compatible=False,
                )
            else:
                stream = await anyio.connect_tcp(origin.host, origin.port)
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            raise httpx.ConnectError(_words(error)) from error
        raw_socket = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 (no Django)
        return _Connection(stream, raw_socket.fileno(), origin.scheme != "https")

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = httpx.create_ssl_context(trust_env=False)
        return self._ssl_context

    async def _exchange(
        self, origin: Origin, connection: _Connection, data: bytes
    ) -> WireResponse:
        reusable = False
        try:
            with contextlib.suppress(anyio.BrokenResourceError):
                # A server may answer and close before it has read everything; what
                # it said is read below, and if it said nothing, that read fails.
                await connection.send(data)
            found = await read_response(
                connection.stream, body_cap_bytes=self._body_cap_bytes
            )
            reusable = found.reusable
        except BrokenResponseError as error:
            raise CutResponse(
                str(error), status=error.status, partial=error.partial
            ) from None
        except OversizeResponseError as error:
            raise OversizeBody(error.status) from None
        finally:
            if not reusable:
                with anyio.CancelScope(shield=True):
                    await connection.stream.aclose()
        if reusable:
            connection.idle_since = self._clock()
            self._idle.setdefault(origin, []).append(connection)
        return found


def origin_of(url: httpx.URL) -> Origin:
    """Return where a connection for this URL leads."""
    return Origin(url.scheme, url.host, url.port or _default_port(url.scheme))


def head_of(
    method: str, url: httpx.URL, headers: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """Return request line and headers, without the blank line that ends them.

    Raises httpx.LocalProtocolError for a value that would break out of its line.
    """
    lines = [b"%b %b HTTP/1.1\r\n" % (method.encode(), url.raw_path)]
    for name, value in headers:
        if b"\n" in value or b"\r" in value:
            raise httpx.LocalProtocolError("a header value holds a line break")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _words(error: BaseException) -> str:
    """Return an error as its type and the system's own words."""
    detail = error.strerror if isinstance(error, OSError) and error.strerror else ""
    return f"{type(error).__name__} {detail}".strip()
