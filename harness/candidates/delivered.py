"""A response as it arrived, live or from a record: whole, or cut short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from harness.candidates.wire import Classification


class Delivered(NamedTuple):
    """A complete response, its content coding undone."""

    status: int
    headers: dict[str, str]
    """Lower-case names; a repeated header is joined with commas."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Undelivered:
    """No complete response."""

    classification: Classification
    status: int | None
    partial: bytes
    """What had arrived of the body: crash evidence, never an answer."""
