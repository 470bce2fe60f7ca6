"""Artifacts: files that a run writes once and never changes.

A JSON artifact has one text: sorted keys, two spaces of indent, no NaN, a newline
at the end. It appears complete or not at all. Writing it again with the same bytes
is no change; with other bytes it is a conflict, and the older file stands.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.errors import ArtifactError
from harness.evidence.disk import (
    discarded_on_failure,
    machine_refusals,
    publish_file,
    temporary_beside,
)
from harness.regular_file import read_regular_file
from harness.strict_json import StrictJsonError, decode_document

_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False
)
_TOKENS_A_PIECE: Final = 4096


def artifact_bytes(payload: Json) -> bytes:
    """Return the one text of a JSON artifact.

    Raises ArtifactError (`eval_artifact_invalid`) for what JSON cannot hold.
    """
    return b"".join(_pieces(payload))


def _pieces(payload: Json) -> Iterator[bytes]:
    """Yield the text in parts: a report lists every episode, in memory once only."""
    try:
        tokens = _ENCODER.iterencode(payload)
        while part := "".join(islice(tokens, _TOKENS_A_PIECE)):
            yield part.encode("utf-8")
        yield b"\n"
    except (ValueError, TypeError) as error:
        raise ArtifactError(
            "eval_artifact_invalid",
            "an artifact cannot be written as strict JSON",
            expected="finite numbers, and text that UTF-8 can hold",
            actual=str(error),
            recovery="report this as a defect; nothing was written",
        ) from None


def write_json_artifact(path: Path, payload: Json) -> str:
    """Write a JSON artifact once and return its content hash.

    Raises ArtifactError (`eval_cli_artifact_conflict`) if the file holds anything
    else, EvidenceError if the machine refuses.
    """
    return write_once(path, _pieces(payload))


def read_json_artifact(path: Path) -> Json:
    """Read a JSON artifact strictly; raise ArtifactError if it is none."""
    with machine_refusals("read an artifact", path):
        data = read_regular_file(path)
    try:
        return decode_document(data)
    except StrictJsonError as error:
        raise ArtifactError(
            "eval_artifact_invalid",
            "an artifact is no strict JSON",
            where=path.name,
            expected="the file as the run wrote it",
            actual=str(error),
            recovery="bring back an intact copy of the run folder",
        ) from None


def write_once(path: Path, pieces: Iterable[bytes]) -> str:
    """Write a file of any length once and return its content hash.

    An existing file must have the same bytes. Raises as `write_json_artifact`.
    """
    temporary = temporary_beside(path)
    digest = hashlib.sha256()
    with machine_refusals("write an artifact", path), discarded_on_failure(temporary):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as stream:
            for piece in pieces:
                digest.update(piece)
                stream.write(piece)
        content_hash = "sha256:" + digest.hexdigest()
        if not path.exists():
            publish_file(temporary, path)
            return content_hash
        existing = hash_file(path)
        if existing != content_hash:
            raise conflict(path, content_hash, existing)
        temporary.unlink()
    return content_hash


def conflict(path: Path, expected: str, actual: str) -> ArtifactError:
    """Return the refusal of an artifact that holds other evidence."""
    return ArtifactError(
        "eval_cli_artifact_conflict",
        "an artifact exists already and holds something else",
        where=path.name,
        expected=expected,
        actual=actual,
        recovery="choose a new output folder; artifacts are never overwritten",
    )
