"""Damage to the evidence of a finished run, as a power cut or a bad disk leaves it.

Nothing is killed: a finished folder is brought back to the moment before its
artifacts were written, and then a log is cut in its last line or changed inside.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

from harness.evidence.folder import RunFolder

LOGS: Final = ("candidate_io_cache", "tool_trace_cache")
_AFTER_EVIDENCE: Final = ("report", "eval_task_results", "eval_report")


def unfinish(folder: RunFolder) -> None:
    """Take away what a run writes after its evidence."""
    folder.manifest.unlink()
    for name in _AFTER_EVIDENCE:
        folder.file(name).unlink()


def tear(log: Path, draw: random.Random) -> int:
    """Cut a log inside its last line; return how many bytes of the line are left."""
    content = log.read_bytes()
    start = content.rstrip(b"\n").rfind(b"\n") + 1
    left = draw.randrange(1, len(content) - start)
    os.truncate(log, start + left)
    return left


def damage(log: Path, draw: random.Random) -> tuple[int, bytes]:
    """Change one byte well before the last line; return its place and old value."""
    content = log.read_bytes()
    last = content.rstrip(b"\n").rfind(b"\n")
    places = [i for i in range(last) if content[i : i + 1].isalnum()]
    place = draw.choice(places)
    old = content[place : place + 1]
    write_byte(log, place, b"0" if old != b"0" else b"1")
    return place, old


def write_byte(log: Path, place: int, value: bytes) -> None:
    """Put one byte where it belongs."""
    with log.open("r+b") as stream:
        stream.seek(place)
        stream.write(value)


def torn_tails(log: Path) -> int:
    """Count the tails that were moved aside."""
    return len(list(log.parent.glob(f"{log.name}.torn-*")))
