"""Length-prefixed frames on a stream: four bytes of size, then so many bytes.

The same framing serves evaluator and worker. Reading and writing are bound to the
functions of `os` as they were when this module was first imported, because pack code
that is imported later may replace them.
"""

from __future__ import annotations

import os
import struct

from oracle_workers.own_builtins import OWN_BUILTINS

globals()["__builtins__"] = OWN_BUILTINS

HEADER_SIZE = 4
MAX_REQUEST_BYTES = 64 << 20
"""Largest request that a worker accepts: task objects and arguments are small."""

_HEADER = struct.Struct(">I")
_pack_header = _HEADER.pack
_unpack_header = _HEADER.unpack
_read = os.read
_write = os.write


class FrameError(Exception):
    """The stream ended inside a frame, or a frame is larger than its cap."""


def frame(payload: bytes) -> bytes:
    """Return the payload with its length before it."""
    return _pack_header(len(payload)) + payload


def announced_size(header: bytes | bytearray) -> int:
    """Return the payload size in bytes that a header announces."""
    size: int = _unpack_header(bytes(header[:HEADER_SIZE]))[0]
    return size


def read_frame(descriptor: int, cap: int = MAX_REQUEST_BYTES) -> bytes | None:
    """Read one frame, blocking; None at a clean end of the stream."""
    header = _read_exactly(descriptor, HEADER_SIZE, may_end=True)
    if header is None:
        return None
    size = announced_size(header)
    if size > cap:
        raise FrameError(f"frame of {size} bytes, at most {cap} are accepted")
    return _read_exactly(descriptor, size, may_end=False)


def write_frame(descriptor: int, payload: bytes) -> None:
    """Write one frame, blocking."""
    rest = memoryview(frame(payload))
    while rest:
        rest = rest[_write(descriptor, rest) :]


def _read_exactly(descriptor: int, size: int, *, may_end: bool) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = _read(descriptor, min(size - len(pieces), 1 << 20))
        if not piece:
            if may_end and not pieces:
                return None
            raise FrameError(f"the stream ended {size - len(pieces)} bytes early")
        pieces += piece
    return bytes(pieces)
