"""Canonical JSON, typed equality and content hashes.

One value has one text: keys sorted by code point, no spaces, no escapes beyond
JSON's own, no NaN. Hashes are `sha256:` and 64 hex digits over its UTF-8 bytes
(`spec/executable-evaluator.md` 0.4). Equality looks at the type first, so `1`,
`1.0`, `"1"` and `true` are four values.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness.regular_file import open_regular_file

Json = Any
"""A JSON value as Python holds it: None, bool, int, float, str, list, dict."""

# Values come out of decoders or records, so they cannot contain themselves, and the
# check for that would cost as much as the encoding.
_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
)
quoted: Callable[[str], str] = json.encoder.encode_basestring
"""Return the canonical text of a string; raises TypeError for anything else."""


def _pieces() -> Callable[[Json, int], Iterable[str]]:
    """Return the encoding of `_ENCODER`, which makes itself a new one each time."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, _: _ENCODER.iterencode(value)
    pieces: Callable[[Json, int], Iterable[str]] = make(
        None, _ENCODER.default, quoted, None, ":", ",", True, False, False
    )
    return pieces


_PIECES = _pieces()
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
# Small, since blocks that are large teach malloc to keep what is freed for itself.
_READ_SIZE = 1 << 16


def canonical_json(value: Json) -> str:
    """Return the canonical text of a JSON value.

    Raises ValueError for NaN or infinity and TypeError for what is not JSON.
    """
    return "".join(_PIECES(value, 0))


def canonical_bytes(value: Json) -> bytes:
    """Return the UTF-8 bytes of the canonical text."""
    return "".join(_PIECES(value, 0)).encode("utf-8")


def hash_bytes(data: bytes) -> str:
    """Return the content hash of raw bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def content_hash(value: Json) -> str:
    """Return the content hash of a JSON value."""
    return hash_bytes(canonical_bytes(value))


def hash_file(path: Path) -> str:
    """Return the content hash of a file, read in pieces."""
    digest = hashlib.sha256()
    with open_regular_file(path) as stream:
        while piece := stream.read(_READ_SIZE):
            digest.update(piece)
    return "sha256:" + digest.hexdigest()


def is_content_hash(text: object) -> bool:
    """Tell whether the value is a well-formed content hash."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def type_tag(value: Json) -> str:
    """Return `null bool int float str array` or `object`.

    Raises TypeError for a value that JSON does not have.
    """
    if value is None:
        return "null"
    tag = _TAGS.get(type(value))
    if tag is None:
        raise TypeError(f"not a JSON value: {type(value).__name__}")
    return tag


_TAGS: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "array",
    tuple: "array",
    dict: "object",
}


def json_equal(left: Json, right: Json) -> bool:
    """Compare two JSON values by type, then by value, at every depth."""
    tag = type_tag(left)
    if tag != type_tag(right):
        return False
    if tag == "object":
        return left.keys() == right.keys() and all(
            json_equal(value, right[key]) for key, value in left.items()
        )
    if tag == "array":
        return len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)
