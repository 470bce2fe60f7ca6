"""One sequential, verified pass over a log.

Memory holds one line at a time. An unterminated last line ends the pass and is told
apart from damage, which is refused with its record number and byte offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from harness.evidence.disk import machine_refusals
from harness.evidence.log_line import (
    MAX_LINE_BYTES,
    Entry,
    LineError,
    LogFormat,
    damage,
    decode_line,
)
from harness.regular_file import open_regular_file

_READ_SIZE: Final = 1 << 16


class LogScan:
    """A pass over the lines of a log.

    Iterating yields `(line, entry)` and raises EvidenceError at damage.
    Afterwards `end` is the offset behind the last whole record and `torn_bytes`
    the size of an unterminated tail.
    """

    def __init__(self, stream: BinaryIO, log: LogFormat) -> None:
        self._stream = stream
        self._log = log
        self.end = 0
        self.torn_bytes = 0

    def __iter__(self) -> Iterator[tuple[bytes, Entry]]:
        sequence = 0
        while line := self._stream.readline(MAX_LINE_BYTES + 1):
            sequence += 1
            if not line.endswith(b"\n"):
                if len(line) > MAX_LINE_BYTES:
                    raise damage(self._log, sequence, self.end, "the line is too long")
                self.torn_bytes = len(line)
                return
            try:
                entry = decode_line(self._log, line[:-1], sequence, self.end)
            except LineError as error:
                raise damage(self._log, sequence, self.end, str(error)) from None
            self.end += len(line)
            yield line, entry


def stream_entries(path: Path, log: LogFormat) -> Iterator[Entry]:
    """Yield the verified records of a log in one pass, without an index.

    An unterminated tail is skipped. Raises EvidenceError at damage.
    """
    with (
        machine_refusals("read a log", path),
        open_regular_file(path, _READ_SIZE) as stream,
    ):
        for _, entry in LogScan(stream, log):
            yield entry
