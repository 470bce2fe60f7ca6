"""Reads the event log of a run line by line, and joins it with its data set.

The log is UTF-8 text with one JSON object a line; line feeds, carriage returns and
both together end a line. A line that cannot be read is counted under a name, and the
run is scored without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.regular_file import open_regular_file
from harness.scoring.mlperf_agentic.diagnostics import LineCounts
from harness.scoring.mlperf_agentic.events import (
    Event,
    SkippedLineError,
    read_event,
)
from harness.scoring.mlperf_agentic.recorded import Recorded
from harness.scoring.mlperf_agentic.skips import LineSkip
from harness.scoring.mlperf_agentic.turn_log import TurnLog

_BUFFER_BYTES = 1 << 20


def read_log(path: Path, recorded: Recorded) -> tuple[TurnLog, LineCounts]:
    """Read a log and join it; the turns are in reporting order then."""
    log, counts = TurnLog(recorded), LineCounts()
    for event in _events(path, counts):
        log.add(event)
    if log.unresolved:
        for event in _events(path, LineCounts()):
            log.resolve(event)
    log.close()
    return log, counts


def _events(path: Path, counts: LineCounts) -> Iterator[Event]:
    for line in _lines(path):
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError:
            counts.skipped[LineSkip.NOT_UTF8] += 1
            continue
        if not text:
            continue
        try:
            event = read_event(text)
        except SkippedLineError as skipped:
            counts.skipped[skipped.reason] += 1
            continue
        counts.read += 1
        yield event


def _lines(path: Path) -> Iterator[bytes]:
    with open_regular_file(path, _BUFFER_BYTES) as stream:
        for line in stream:
            if b"\r" in line:
                yield from line.splitlines()
            else:
                yield line
