"""Strict JSON decoding: nothing repaired, nothing guessed, nothing lost.

The rules are `spec/action-ir.md` 2 and `spec/wire-contract.md` A4. Codes, in the
order in which one text can meet them: `type_mismatch`, `invalid_utf8`, then
whichever of `duplicate_key`, `non_finite_number`, `invalid_json` and
`max_nesting_exceeded` the text reaches first, then `top_level_not_object`,
`max_nesting_exceeded` by depth, `invalid_utf8` and `duplicate_key` (after NFC) in
document order. Integers keep arbitrary precision up to 4300 digits.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

from harness.canonical import Json
from harness.recursion import parse_with_room

MAX_DEPTH = 64
"""Deepest value of arguments and action text; the root has depth 0."""
DOCUMENT_DEPTH = 256
"""Deepest value of envelopes and of our own files."""
MAX_INTEGER_DIGITS = 4300
_PARSER_DEPTH = 960
"""Where CPython 3.11 gives up while parsing; held on every version."""

_WHITESPACE = " \t\n\r"
_DIGITS = "0123456789"
_STRUCTURE = re.compile(
    # The closing quote is optional, so that a string without one is read once only.
    r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]',
    re.DOTALL,
)


class StrictJsonError(ValueError):
    """The text is not one strict JSON value; `code` and `path` say how."""

    def __init__(self, code: str, detail: str, path: str = "$") -> None:
        self.code = code
        self.detail = detail
        self.path = path
        super().__init__(f"{code} at {path}: {detail}")


def decode(text: object, *, max_depth: int = MAX_DEPTH) -> Json:
    """Decode one strict JSON value; raise StrictJsonError."""
    value = _parse(text)
    _check_values(value, str(text), max_depth)
    return value


def decode_object(text: object, *, max_depth: int = MAX_DEPTH) -> dict[str, Json]:
    """Decode one strict JSON object; raise StrictJsonError."""
    value = _parse(text)
    if not isinstance(value, dict):
        raise StrictJsonError("top_level_not_object", f"got {type(value).__name__}")
    _check_values(value, str(text), max_depth)
    return value


def decode_document(
    data: bytes, *, allow_bom: bool = False, max_depth: int = DOCUMENT_DEPTH
) -> Json:
    """Decode a file or an HTTP body: UTF-8, duplicate keys and NaN refused.

    Unpaired surrogate escapes are left for the caller to judge, since a provider's
    envelope may carry a candidate's broken text. Raises StrictJsonError.
    """
    if allow_bom and data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJsonError("invalid_utf8", str(error)) from None
    if text.startswith("\ufeff"):
        raise StrictJsonError("invalid_json", "a byte order mark before the value")
    value = _parse(text)
    if _is_deeper(value, text, max_depth):
        raise StrictJsonError("max_nesting_exceeded", f"deeper than {max_depth}")
    return value


def is_past_parser_depth(text: str) -> bool:
    """Tell whether a plain parser of CPython 3.11 gives the text up for its nesting."""
    return _too_deep_at(text) is not None


def has_unpaired_surrogate(text: str) -> bool:
    """Tell whether the text cannot be encoded as UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


class _NonFiniteError(ValueError):
    pass


class _DuplicateKeyError(ValueError):
    pass


def _parse(text: object) -> Json:
    if (
        isinstance(text, str)
        and not _holds_long_integer(text)
        and not has_unpaired_surrogate(text)
        and (_cannot_nest(text, _PARSER_DEPTH) or _too_deep_at(text) is None)
    ):
        # No integer can be too long here, so the C scanner reads them by itself.
        try:
            value, end = _scan(text, 0)
        except (ValueError, RecursionError, StopIteration):
            return _parse_anything(text)
        if end == len(text):
            return value
    return _parse_anything(text)


def _holds_long_integer(text: str) -> bool:
    """Tell whether more digits stand in a row than a number may have."""
    # So many digits in a row reach over one at least of the places this far apart.
    step = MAX_INTEGER_DIGITS
    for place in range(step, len(text), step):
        if text[place] in _DIGITS:
            before, after = text[place - step : place], text[place : place + step + 1]
            digits = len(before) - len(before.rstrip(_DIGITS))
            digits += len(after) - len(after.lstrip(_DIGITS))
            if digits > MAX_INTEGER_DIGITS:
                return True
    return False


def _parse_anything(text: object) -> Json:
    if not isinstance(text, str):
        raise StrictJsonError("type_mismatch", f"expected text, got {_name(text)}")
    if has_unpaired_surrogate(text):
        raise StrictJsonError("invalid_utf8", "unpaired surrogate in the text")
    cut = _too_deep_at(text)
    try:
        begin = _skip_space(text, 0)
        value, end = parse_with_room(
            lambda whole: _DECODER.raw_decode(whole, begin), text[:cut]
        )
    except _DuplicateKeyError as error:
        raise StrictJsonError("duplicate_key", f"key {error} repeats") from None
    except _NonFiniteError as error:
        raise StrictJsonError("non_finite_number", f"token {error}") from None
    except RecursionError:
        raise StrictJsonError("max_nesting_exceeded", "parser limit") from None
    except json.JSONDecodeError as error:
        if cut is not None and error.pos >= cut:
            raise StrictJsonError("max_nesting_exceeded", "parser limit") from None
        raise StrictJsonError("invalid_json", str(error)) from None
    if _skip_space(text, end) != len(text):
        raise StrictJsonError("invalid_json", f"extra data at character {end}")
    return value


def _name(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _skip_space(text: str, position: int) -> int:
    length = len(text)
    while position < length and text[position] in _WHITESPACE:
        position += 1
    return position


def _cannot_nest(text: str, depth: int) -> bool:
    """Tell whether the text is too short for a whole value of more levels than these.

    Each level takes two brackets, so that most texts need not be searched for them.
    """
    return len(text) <= 2 * depth


def _too_deep_at(text: str) -> int | None:
    if text.count("[") + text.count("{") <= _PARSER_DEPTH:
        return None
    depth = 0
    for token in _STRUCTURE.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > _PARSER_DEPTH:
                return token.start()
        elif token[0] in "]}":
            depth -= 1
    return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(repr(key))
            seen.add(key)
    return value


def _integer(token: str) -> int:
    if len(token.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise json.JSONDecodeError("integer has too many digits", token, 0)
    return int(token)


def _float(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        raise _NonFiniteError(token)
    return value


def _constant(token: str) -> float:
    raise _NonFiniteError(token)


_scan = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_constant=_constant
).scan_once  # type: ignore[attr-defined]
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)


def _is_deeper(value: Json, text: str, max_depth: int) -> bool:
    if _cannot_nest(text, max_depth) or (
        text.count("[") + text.count("{") <= max_depth
    ):
        return False
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > max_depth:
            return True
        if isinstance(item, dict):
            pending.extend((child, depth + 1) for child in item.values())
        elif isinstance(item, list):
            pending.extend((child, depth + 1) for child in item)
    return False


def _check_values(value: Json, text: str, max_depth: int) -> None:
    if _is_deeper(value, text, max_depth):
        raise StrictJsonError("max_nesting_exceeded", f"deeper than {max_depth}")
    if not text.isascii() or "\\u" in text:
        _check_text(value, "$")


def _check_text(value: Json, path: str) -> None:
    if isinstance(value, str):
        if has_unpaired_surrogate(value):
            raise StrictJsonError("invalid_utf8", "unpaired surrogate", path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_text(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        seen: set[str] = set()
        for key, item in value.items():
            if has_unpaired_surrogate(key):
                raise StrictJsonError("invalid_utf8", "unpaired surrogate", path)
            normal = unicodedata.normalize("NFC", key)
            if normal in seen:
                raise StrictJsonError("duplicate_key", f"{normal!r} after NFC", path)
            seen.add(normal)
            _check_text(item, f"{path}.{key}")
