"""The workflow rule: one intent code of the model against a set of right ones.

The explicit form (`intent: I042`, any case, the first of a field) is looked for in
the reasoning and then in the content; only if neither has it, the bare form (`I042`,
capital, the last of a field) in the same order. Letters, digits, word borders and
spaces are those of Unicode, as Python's `re` has them.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from harness.canonical import Json

_EXPLICIT: Final = re.compile(r"\bintent:\s*(I\d{3})\b", re.IGNORECASE)
_BARE: Final = re.compile(r"\bI\d{3}\b")


def truth_intents(intent_codes: Json) -> tuple[str, ...]:
    """Return the right codes, upper-case, sorted, each once; () is no ground truth."""
    if not isinstance(intent_codes, list | tuple):
        return ()
    codes = {code.upper() for code in intent_codes if isinstance(code, str) and code}
    return tuple(sorted(codes))


def model_intent(reasoning: Json, content: Json) -> str | None:
    """Return the code that the model commits to, if any; fields may be anything."""
    fields = [field for field in (reasoning, content) if isinstance(field, str)]
    for field in fields:
        explicit = _EXPLICIT.search(field)
        if explicit is not None:
            return explicit[1].upper()
    for field in fields:
        bare = deque(_BARE.finditer(field), maxlen=1)
        if bare:
            return bare[0][0]
    return None
