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

_PIECE = 1 << 12
_LARGE_PIECE = 1 << 20
_HEADER = struct.Struct(">I")
_pack_header = _HEADER.pack
_unpack_header = _HEADER.unpack
_read = os.read
_write = os.write


STOPPED = b'{"stopped":true,'
"""How an answer begins after which nothing else that was sent ahead is done."""


class FrameError(Exception):
    """The stream ended inside a frame, or a frame is larger than its cap."""


def frame(payload: bytes) -> bytes:
    """Return the payload with its length before it."""
    return _pack_header(len(payload)) + payload


def announced_size(header: bytes | bytearray) -> int:
    """Return the payload size in bytes that a header announces."""
    size: int = _unpack_header(bytes(header[:HEADER_SIZE]))[0]
    return size


class FrameReader:
    """The frames of one descriptor, blocking; mostly one call of the system each."""

    def __init__(self, descriptor: int, cap: int = MAX_REQUEST_BYTES) -> None:
        self._descriptor = descriptor
        self._cap = cap
        self._rest = b""

    def read(self) -> bytes | None:
        """Return the next frame's payload; None at a clean end of the stream.

        Raises FrameError for a frame over the cap and for a torn one.
        """
        pieces = self._rest or _read(self._descriptor, _PIECE)
        if not pieces:
            return None
        if len(pieces) < HEADER_SIZE:
            pieces = self._longer(pieces, HEADER_SIZE)
        size = _unpack_header(pieces[:HEADER_SIZE])[0]
        if size > self._cap:
            raise FrameError(f"frame of {size} bytes, at most {self._cap} are accepted")
        end = HEADER_SIZE + size
        if len(pieces) < end:
            pieces = self._longer(pieces, end)
        self._rest = pieces[end:]
        return pieces[HEADER_SIZE:end]

    def _longer(self, start: bytes, size: int) -> bytes:
        pieces = bytearray(start)
        while len(pieces) < size:
            piece = _read(self._descriptor, max(_PIECE, min(size, _LARGE_PIECE)))
            if not piece:
                raise FrameError(f"the stream ended {size - len(pieces)} bytes early")
            pieces += piece
        return bytes(pieces)


def write_frame(descriptor: int, payload: bytes) -> None:
    """Write one frame, blocking."""
    content = frame(payload)
    written = _write(descriptor, content)
    while written < len(content):
        written += _write(descriptor, memoryview(content)[written:])
