"""JSON as the original's programs read it, with the limits of one interpreter.

Arguments are read by Python's own decoder: `NaN` and its like are numbers, the last
of two equal keys counts, lone surrogate escapes pass. Log lines are read by a
stricter one: no `NaN`, no number out of range, no lone surrogate. An integer of more
than 4300 digits and nesting that CPython 3.11 gives up on are refused by name on
every version of Python, since either would end the original's run.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Final

from harness.canonical import Json
from harness.strict_json import MAX_INTEGER_DIGITS, is_past_parser_depth

_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class NotJsonError(ValueError):
    """The text is not JSON."""


class IntegerTooLongError(ValueError):
    """An integer has more digits than the interpreter converts."""


class TooDeepError(ValueError):
    """The text is nested deeper than the interpreter follows."""


def decode_arguments(text: str) -> Json:
    """Decode the arguments of a call; raise one of the errors above."""
    value, end = _decoded(_ARGUMENTS, text, _skip_space(text, 0))
    if _skip_space(text, end) != len(text):
        raise NotJsonError("data after the value")
    return value


def decode_line(text: str) -> Json:
    """Decode one stripped line of an event log; raise one of the errors above."""
    value, end = _decoded(_LINE, text, 0)
    if end != len(text):
        raise NotJsonError("data after the value")
    if ("\\ud" in text or "\\uD" in text) and _has_lone_surrogate(text):
        raise NotJsonError("lone surrogate")
    return value


def _decoded(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Json, int]:
    if is_past_parser_depth(text):
        raise TooDeepError("deeper than the interpreter follows")
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJsonError(str(error)) from None
    except RecursionError:
        raise TooDeepError("deeper than the interpreter follows") from None


def _skip_space(text: str, position: int) -> int:
    length = len(text)
    while position < length and text[position] in " \t\n\r":
        position += 1
    return position


def _has_lone_surrogate(text: str) -> bool:
    return any(escape["lone"] for escape in _ESCAPE.finditer(text))


def _integer(token: str) -> int:
    if len(token) > MAX_INTEGER_DIGITS and len(token.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise IntegerTooLongError(f"more than {MAX_INTEGER_DIGITS} digits")
    return int(token)


def _finite(token: str) -> float:
    value = float(token)
    if isinf(value):
        raise NotJsonError("number out of range")
    return value


def _refuse_constant(token: str) -> float:
    raise NotJsonError(f"{token} is no number")


_ARGUMENTS: Final = json.JSONDecoder(parse_int=_integer)
_LINE: Final = json.JSONDecoder(
    parse_int=_integer, parse_float=_finite, parse_constant=_refuse_constant
)
