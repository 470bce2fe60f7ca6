"""The report files of a gate: pass and refusal have different names.

A reader can then tell a diagnosis from a pass by which file is there, so writing one
removes the other. JSON with indent 2, sorted keys and a final newline; a reader sees
the whole file or none.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness.canonical import Json


def report_bytes(payload: dict[str, Json]) -> bytes:
    """Return the bytes of a report file."""
    text = json.dumps(
        payload, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    return (text + "\n").encode("utf-8")


def replace_report(
    folder: Path, name: str, payload: dict[str, Json], *, stale: str
) -> None:
    """Write a report whole, then remove the stale file of the opposite verdict."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as stream:
            stream.write(report_bytes(payload))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(folder / name)
    finally:
        temporary.unlink(missing_ok=True)
    (folder / stale).unlink(missing_ok=True)
