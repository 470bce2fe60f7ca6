"""Reading one HTTP/1.1 response exactly: whole, or an error that says how it ended.

A body counts as whole only when its framing says so: all bytes of `content-length`,
the last chunk, or the end of the connection where neither is given (RFC 9112, 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream

HEAD_CAP_BYTES: Final = 64 * 1024
_LINE_CAP_BYTES = 4096
_READ_BYTES = 64 * 1024

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class WireResponse:
    """One response as it came, its content coding still on."""

    status: int
    headers: Headers
    """Lower-case names and values without outer white space."""
    body: bytes
    reusable: bool
    """Whether the connection may carry another request."""


class NoResponseError(Exception):
    """The connection ended before the first byte of a response."""


class BrokenResponseError(Exception):
    """The response is cut or breaks the protocol; holds what had arrived."""

    def __init__(
        self, reason: str, *, status: int | None, headers: Headers, partial: bytes
    ) -> None:
        self.status = status
        self.headers = headers
        self.partial = partial
        super().__init__(reason)


class OversizeResponseError(Exception):
    """The body is over the cap; reading stopped there."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the body of a {status} is over the cap")


class _EndedError(Exception):
    """The connection ended: closed by the peer, or broken."""

    def __init__(self, reason: str, *, closed: bool) -> None:
        self.closed = closed
        super().__init__(reason)


class _ProtocolError(Exception):
    """Bytes that are no HTTP/1.1."""


async def read_response(
    stream: ByteReceiveStream, *, body_cap_bytes: int
) -> WireResponse:
    """Read one response from a connection that has just carried one request.

    Raises NoResponseError, BrokenResponseError or OversizeResponseError; after any
    of them the connection is of no more use.
    """
    return await _Reader(stream, body_cap_bytes).read()


class _Reader:
    """The bytes of one response, read once from front to back."""

    def __init__(self, stream: ByteReceiveStream, body_cap_bytes: int) -> None:
        self._stream = stream
        self._body_cap_bytes = body_cap_bytes
        self._buffer = bytearray()
        self._status: int | None = None
        self._headers: Headers = ()
        self._parts: list[bytes] = []
        self._size = 0

    async def read(self) -> WireResponse:
        try:
            version = await self._read_head()
            reusable = await self._read_body()
        except (_EndedError, _ProtocolError) as error:
            if self._status is None and not self._buffer:
                raise NoResponseError(str(error)) from None
            raise BrokenResponseError(
                str(error),
                status=self._status,
                headers=self._headers,
                partial=b"".join(self._parts),
            ) from None
        assert self._status is not None  # noqa: S101
        keep_alive = version == b"HTTP/1.1" and not self._says_close()
        return WireResponse(
            self._status,
            self._headers,
            b"".join(self._parts) if len(self._parts) != 1 else self._parts[0],
            reusable and keep_alive and not self._buffer,
        )

    async def _fill(self) -> None:
        try:
            self._buffer += await self._stream.receive(_READ_BYTES)
        except anyio.EndOfStream:
            raise _EndedError("the peer closed the connection", closed=True) from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            cause = type(error.__cause__ or error).__name__
            raise _EndedError(f"connection broke: {cause}", closed=False) from None

    def _cut_front(self, count: int, skip: int = 0) -> bytes:
        """Take bytes off the front and drop the next `skip`; cheap for a bytearray."""
        piece = bytes(self._buffer[:count])
        del self._buffer[: count + skip]
        return piece

    async def _read_head(self) -> bytes:
        """Read the head of the final response and return its protocol version."""
        while True:
            while (end := self._head_end()) < 0:
                await self._fill()
            version, status, headers = _parse_head(self._cut_front(end, 4))
            if status == 101:
                raise _ProtocolError("the server switched protocols")
            if status >= 200:
                self._status, self._headers = status, headers
                return version

    def _head_end(self) -> int:
        """Return where the head ends, or -1; blank lines before it are dropped."""
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]
        end = self._buffer.find(b"\r\n\r\n")
        if max(end, len(self._buffer) if end < 0 else 0) > HEAD_CAP_BYTES:
            raise _ProtocolError("the response head is over the cap")
        return end

    def _values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self._headers if key == name]

    def _says_close(self) -> bool:
        return any(b"close" in value.lower() for value in self._values(b"connection"))

    async def _read_body(self) -> bool:
        """Read the body; return whether its end left the connection usable."""
        if self._status in (204, 304):
            return True
        codings = b",".join(self._values(b"transfer-encoding")).lower()
        lengths = set(self._values(b"content-length"))
        if codings:
            if codings.strip() != b"chunked":
                raise _ProtocolError("a transfer coding other than chunked")
            await self._read_chunks()
            return not lengths
        if lengths:
            await self._take(self._declared_length(lengths))
            return True
        await self._read_to_end()
        return False

    def _declared_length(self, lengths: set[bytes]) -> int:
        values = {v.strip() for length in lengths for v in length.split(b",")}
        if len(values) != 1 or not (text := values.pop()).isdigit():
            raise _ProtocolError("content-length is no single number")
        digits = text.lstrip(b"0") or b"0"
        self._refuse_over_cap(int(digits) if len(digits) < 19 else 10**19)
        return int(digits)

    def _refuse_over_cap(self, more: int) -> None:
        if self._size + more > self._body_cap_bytes:
            assert self._status is not None  # noqa: S101
            raise OversizeResponseError(self._status)

    def _keep(self, piece: bytes) -> None:
        self._refuse_over_cap(len(piece))
        if piece:
            self._parts.append(piece)
            self._size += len(piece)

    async def _take(self, count: int) -> None:
        """Move exactly `count` bytes of the connection into the body."""
        while count > 0:
            if not self._buffer:
                await self._fill()
            piece = self._cut_front(count)
            count -= len(piece)
            self._keep(piece)

    async def _read_to_end(self) -> None:
        while True:
            self._keep(self._cut_front(len(self._buffer)))
            try:
                await self._fill()
            except _EndedError as error:
                if error.closed:
                    return
                raise

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _LINE_CAP_BYTES:
                raise _ProtocolError("a chunk line is over the cap")
            await self._fill()
        return self._cut_front(end, 2)

    async def _read_chunks(self) -> None:
        while True:
            size_text = (await self._line()).partition(b";")[0].strip()
            if not 0 < len(size_text) <= 16 or size_text.strip(_HEX_DIGITS):
                raise _ProtocolError("a chunk size is no hexadecimal number")
            size = int(size_text, 16)
            if size == 0:
                break
            self._refuse_over_cap(size)
            await self._take(size)
            if await self._line():
                raise _ProtocolError("a chunk does not end where it says")
        trailer_bytes = 0
        while line := await self._line():
            trailer_bytes += len(line)
            if trailer_bytes > HEAD_CAP_BYTES:
                raise _ProtocolError("the trailers are over the cap")


_HEX_DIGITS = b"0123456789abcdefABCDEF"


def _parse_head(head: bytes) -> tuple[bytes, int, Headers]:
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    code = rest[:3]
    if (
        version not in (b"HTTP/1.1", b"HTTP/1.0")
        or len(code) != 3
        or not code.isdigit()
        or rest[3:4] not in (b"", b" ")
        or code < b"100"
    ):
        raise _ProtocolError("the first line is no HTTP/1.1 status line")
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip() or b" " in name:
            raise _ProtocolError("a header line has no name")
        headers.append((name.lower(), value.strip()))
    return version, int(code), tuple(headers)
