"""The smallest places where two JSON values differ: what a stated value should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.canonical import Json, canonical_json
from harness.errors import Violation

RECOVERY: Final = "bring back the folder as the run wrote it"
_ABSENT: Final = object()
_SHOWN: Final = 400


def differences(where: str, ours: Json, theirs: Json) -> Iterator[Violation]:
    """Yield one violation for each place where `theirs`, the stated one, differs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            mine, other = ours.get(key, _ABSENT), theirs.get(key, _ABSENT)
            yield from differences(f"{where}.{key}", mine, other)
        return
    if isinstance(ours, list) and isinstance(theirs, list):
        for index in range(max(len(ours), len(theirs))):
            mine = ours[index] if index < len(ours) else _ABSENT
            other = theirs[index] if index < len(theirs) else _ABSENT
            yield from differences(f"{where}[{index}]", mine, other)
        return
    expected, actual = _text(ours), _text(theirs)
    if expected != actual:
        yield Violation(
            "eval_artifact_invalid",
            where,
            "the folder states something else than its evidence gives",
            expected[:_SHOWN],
            actual[:_SHOWN],
            RECOVERY,
        )


def _text(value: Json) -> str:
    return "nothing" if value is _ABSENT else canonical_json(value)
