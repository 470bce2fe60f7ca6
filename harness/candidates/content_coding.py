"""Undoing `content-encoding` so that a cut stream is an error and never a short text.

HTTP clients commonly hand out what a cut gzip stream held so far. Here the stream
has to reach its own end, nothing may follow it, and the result stays under a cap.
"""

from __future__ import annotations

import zlib


class ContentCodingError(ValueError):
    """The body is not what `content-encoding` declares, or it is cut."""


class OversizeContentError(ValueError):
    """The decoded body is over the cap."""


def decode_content(encoding: str | None, body: bytes, *, cap_bytes: int) -> bytes:
    """Return the body without its content codings, of at most `cap_bytes`.

    An empty body stays empty: servers declare a coding on errors without a body.
    Raises ContentCodingError or OversizeContentError.
    """
    codings = [name.strip().lower() for name in (encoding or "").split(",")]
    for coding in reversed(codings):
        if not body or coding in ("", "identity"):
            continue
        if coding in ("gzip", "x-gzip"):
            body = _gunzip(body, cap_bytes)
        elif coding == "deflate":
            body = _inflate(body, cap_bytes)
        else:
            raise ContentCodingError(f"content coding {coding[:40]!r} is not known")
    return body


def _gunzip(body: bytes, cap_bytes: int) -> bytes:
    members: list[bytes] = []
    size = 0
    while True:
        piece, body = _decompress(body, zlib.MAX_WBITS | 16, cap_bytes - size)
        members.append(piece)
        size += len(piece)
        if not body:
            return b"".join(members)


def _inflate(body: bytes, cap_bytes: int) -> bytes:
    # Servers send raw deflate as often as the zlib form that the standard means.
    is_zlib = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
    bits = zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
    content, rest = _decompress(body, bits, cap_bytes)
    if rest:
        raise ContentCodingError("bytes follow the end of the deflate stream")
    return content


def _decompress(body: bytes, bits: int, cap_bytes: int) -> tuple[bytes, bytes]:
    """Return one whole stream and what follows it."""
    engine = zlib.decompressobj(bits)
    try:
        content = engine.decompress(body, cap_bytes + 1)
    except zlib.error as error:
        raise ContentCodingError(str(error)) from None
    if len(content) > cap_bytes:
        raise OversizeContentError(f"over {cap_bytes} bytes")
    if not engine.eof:
        raise ContentCodingError("the compressed stream is cut")
    return content, engine.unused_data
