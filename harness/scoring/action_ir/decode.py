"""From text to a canonical JSON object: strict decoding, then NFC everywhere.

Nothing is searched for, cut off or repaired. The decoding itself is the shared strict
decoder; this module adds the normal form of strings and keys, which may not make two
keys of one object equal (the decoder has refused that already).
"""

from __future__ import annotations

from unicodedata import is_normalized, normalize

from harness.canonical import Json
from harness.scoring.action_ir.problem import InvalidActionError
from harness.strict_json import StrictJsonError, decode_object


def decode_action_object(text: object) -> dict[str, Json]:
    """Decode one JSON object, every string and key in NFC.

    Raises InvalidActionError of stage `parse`.
    """
    try:
        value = decode_object(text)
    except StrictJsonError as error:
        raise InvalidActionError(
            "parse", error.code, error.path, error.detail
        ) from None
    source = str(text)
    if source.isascii() and "\\u" not in source:
        return value
    return {nfc(key): _normal(item) for key, item in value.items()}


def nfc(text: str) -> str:
    """Return the text in Unicode normal form C."""
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def _normal(value: Json) -> Json:
    if isinstance(value, str):
        return nfc(value)
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, dict):
        return {nfc(key): _normal(item) for key, item in value.items()}
    return value
