"""The files of a pack that a pack host needs to run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PackCode:
    """Where a pack's code and fixtures lie; absolute paths."""

    root: Path
    backend: Path | None
    endpoint: Path | None
    assertions: Path
    fixtures: Path | None = None
