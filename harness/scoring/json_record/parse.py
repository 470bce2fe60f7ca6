"""From an answer's text to one JSON value, or to none.

The text is trimmed, one Markdown fence around all of it is taken off, and what is
left is read by Python's own decoder: the last of two equal keys counts, NaN, infinity
and lone surrogate escapes pass. Nothing is searched for in the text. Where versions
of Python differ, the limits of 3.11 hold: 960 levels, 4300 digits of an integer.
"""

from __future__ import annotations

import json
from typing import Final

from harness.canonical import Json
from harness.recursion import parse_with_room
from harness.strict_json import MAX_INTEGER_DIGITS, is_past_parser_depth

_FENCE: Final = "```"
_LANGUAGE: Final = "json"


class UnparseableError(ValueError):
    """The text holds no JSON value, or more than one, or more than that."""


def parse_answer(text: str) -> Json:
    """Return the value of an answer; raise UnparseableError."""
    body = unfenced(text)
    if is_past_parser_depth(body):
        raise UnparseableError("nested past the limit of the parser")
    # Only a long text can hold a long integer, and the hook makes decoding slower.
    loads = json.loads if len(body) <= MAX_INTEGER_DIGITS else _LONG.decode
    try:
        return parse_with_room(loads, body)
    except (ValueError, RecursionError) as error:
        raise UnparseableError(str(error)) from None


def unfenced(text: str) -> str:
    """Trim, take off one fence with nothing or `json` on its first line, trim."""
    body = text.strip()
    if not body.startswith(_FENCE) or not body.endswith(_FENCE):
        return body
    inside = body[len(_FENCE) :].removeprefix(_LANGUAGE)
    if len(inside) < len(_FENCE):
        return body
    return inside[: -len(_FENCE)].strip()


def _integer(token: str) -> int:
    if len(token.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise ValueError("an integer with too many digits")
    return int(token)


_LONG: Final = json.JSONDecoder(parse_int=_integer)
