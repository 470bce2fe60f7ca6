"""One form for equal numbers, so that 0, 0.0 and -0.0 give one fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from harness.canonical import Json


def plain_numbers(value: Json) -> Json:
    """Return a JSON value whose whole floats are integers, at every depth.

    Numbers are equal here when they are equal in arithmetic; booleans are none.
    Raises ValueError for NaN and infinity.
    """
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"{value} is no number that can be compared")
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {str(name): plain_numbers(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(member) for member in value]
    return value
