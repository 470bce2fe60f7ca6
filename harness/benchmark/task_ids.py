"""What a task id may look like: it names files and stands in request ids.

`spec/executable-evaluator.md` 2.7.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_LENGTH: Final = 200
_FORBIDDEN: Final = frozenset('/\\:*?"<>|')


def task_id_problem(task_id: object) -> str | None:
    """Return what is wrong with a task id in a few words, or None."""
    if not isinstance(task_id, str):
        return "is no text"
    if not 1 <= len(task_id) <= MAX_LENGTH:
        return f"has {len(task_id)} characters"
    if task_id in {".", ".."}:
        return "is the name of a folder"
    for character in task_id:
        control = unicodedata.category(character) in {"Cc", "Cs"}
        if character in _FORBIDDEN or character.isspace() or control:
            return f"holds the character {character!r}"
    return None
