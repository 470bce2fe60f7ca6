"""One POST over an httpx transport: the response whole, or how it failed.

The transport is ours or the user's; both are called directly, without a client, so
nothing is redirected, retried, taken from the environment or stored in a cookie jar.
Content codings are undone here for both, since a cut stream has to be an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import httpx

from harness.candidates.content_coding import (
    ContentCodingError,
    OversizeContentError,
    decode_content,
)
from harness.candidates.credential import Credential
from harness.candidates.delivered import Delivered, Undelivered
from harness.candidates.transport import (
    CutResponse,
    HttpTransport,
    OversizeBody,
    head_of,
    origin_of,
)
from harness.candidates.wire import (
    BODY_CAP_BYTES,
    Classification,
    no_response,
    oversize_body,
)
from harness.errors import CandidateError

_HEADERS = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"user-agent", b"fairtrial"),
)


class Mailbox:
    """The address and the transport of one candidate's requests."""

    def __init__(
        self,
        base_url: str,
        credential: Credential,
        transport: httpx.AsyncBaseTransport | None,
        path: str = "/chat/completions",
    ) -> None:
        try:
            self._url = httpx.URL(f"{base_url}{path}")
        except httpx.InvalidURL:
            self._url = httpx.URL("")
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise CandidateError(
                "eval_candidate_client_invalid",
                "the base URL cannot be called",
                where="candidates[].api.base_url",
                expected="http:// or https:// with a host",
                actual=repr(base_url[:200]),
                recovery="correct the URL",
            )
        self._credential = credential
        self._transport = HttpTransport() if transport is None else transport
        self._headers = [(b"host", self._url.netloc), *_HEADERS]
        self._origin = origin_of(self._url)
        self._head = head_of("POST", self._url, self._headers)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()

    async def post(
        self, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> Delivered | Undelivered:
        """Send one body with `more` headers; the caller sets the deadline."""
        status: int | None = None
        parts: list[bytes] = []
        raw_headers: Iterable[tuple[bytes, bytes]]
        try:
            if isinstance(self._transport, HttpTransport):
                # httpx's own request and response cost as much as the exchange.
                found = await self._transport.send(self._origin, self._wire(body, more))
                status, raw_headers = found.status, found.headers
                parts.append(found.body)
            else:
                response = await self._transport.handle_async_request(
                    self._request(body, more)
                )
                status, raw_headers = response.status_code, response.headers.raw
                await _read(response, parts)
            headers = _header_map(raw_headers)
            content = decode_content(
                headers.get("content-encoding"),
                b"".join(parts),
                cap_bytes=BODY_CAP_BYTES,
            )
        except (OversizeBody, OversizeContentError):
            return Undelivered(oversize_body(), status, b"")
        except CutResponse as error:
            return Undelivered(self._fault(error), error.status, error.partial)
        except (httpx.TransportError, ContentCodingError, OSError) as error:
            return Undelivered(self._fault(error), status, b"".join(parts))
        return Delivered(status, headers, content)

    def _last_headers(
        self, body: bytes, more: Sequence[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        length = (b"content-length", b"%d" % len(body))
        return [*more, *self._credential.headers(), length]

    def _wire(self, body: bytes, more: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the bytes of a request."""
        lines = [b"%b: %b\r\n" % header for header in self._last_headers(body, more)]
        return b"".join((self._head, *lines, b"\r\n", body))

    def _request(
        self, body: bytes, more: Sequence[tuple[bytes, bytes]]
    ) -> httpx.Request:
        """Return the same request for a transport of the user's."""
        return httpx.Request(
            "POST",
            self._url,
            headers=[*self._headers, *self._last_headers(body, more)],
            stream=httpx.ByteStream(body),
        )

    def _fault(self, error: Exception) -> Classification:
        name = type(error).__name__
        # The words of a foreign transport may hold a proxy's address and password.
        own = isinstance(self._transport, HttpTransport)
        note = f"{name}: {error}" if own else name
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return no_response("timeout", note)
        return no_response("transport_error", note)


async def _read(response: httpx.Response, parts: list[bytes]) -> None:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise CandidateError(
            "eval_candidate_client_invalid",
            "the transport returned a response without an asynchronous body",
            expected="an asynchronous httpx transport",
            actual=type(response.stream).__name__,
            recovery="pass a subclass of httpx.AsyncBaseTransport",
        )
    size = 0
    try:
        async for part in response.stream:
            size += len(part)
            if size > BODY_CAP_BYTES:
                raise OversizeBody(response.status_code)
            parts.append(part)
    finally:
        await response.aclose()


def _header_map(raw_headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw_headers:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
