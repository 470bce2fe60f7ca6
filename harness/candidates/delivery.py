"""One POST over an httpx transport: the response whole, or how it failed.

The transport is ours or the user's; both are called directly, without a client, so
nothing is redirected, retried, taken from the environment or stored in a cookie jar.
Content codings are undone here for both, since a cut stream has to be an error.
"""

from __future__ import annotations

import httpx

from harness.candidates.content_coding import (
    ContentCodingError,
    OversizeContentError,
    decode_content,
)
from harness.candidates.credential import Credential
from harness.candidates.delivered import Delivered, Undelivered
from harness.candidates.transport import CutResponse, HttpTransport, OversizeBody
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
    ) -> None:
        try:
            self._url = httpx.URL(f"{base_url}/chat/completions")
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

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()

    async def post(self, body: bytes) -> Delivered | Undelivered:
        """Send one body; the caller sets the deadline."""
        # A ready-made stream and header list spare httpx most of its own work, which
        # costs as much as the exchange on a kept-alive connection.
        request = httpx.Request(
            "POST",
            self._url,
            headers=[
                *self._headers,
                *self._credential.headers(),
                (b"content-length", b"%d" % len(body)),
            ],
            stream=httpx.ByteStream(body),
        )
        status: int | None = None
        parts: list[bytes] = []
        try:
            response = await self._transport.handle_async_request(request)
            status = response.status_code
            await _read(response, parts)
            headers = _header_map(response)
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


def _header_map(response: httpx.Response) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers.raw:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
