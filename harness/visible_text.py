"""Text that somebody else wrote, as a terminal may be given it.

What would move a cursor, change a terminal or hide other text is shown as an escape,
`\\u{1b}`; line breaks stay. Reports and messages are shown so; evidence keeps the text.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_ESCAPED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
JOINERS: Final = frozenset("\u200c\u200d")
"""Formatting characters that words and emoji need and that move nothing."""


def visible(text: str) -> str:
    """Return the text with everything escaped that would move a cursor or hide."""
    if text.isascii():
        return _CONTROLS.sub(lambda found: _escape(found[0]), text)
    from unicodedata import category

    return "".join(
        _escape(character)
        if character != "\n"
        and character not in JOINERS
        and category(character) in _ESCAPED_CATEGORIES
        else character
        for character in text
    )


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
