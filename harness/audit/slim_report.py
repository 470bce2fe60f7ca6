"""A contamination report read without its lists of task ids.

A report names every task of every candidate; an audit needs the number and the hash
of each list, as the plan's identity does. Lists are hashed line by line as `run`
writes them, so memory does not grow with the benchmark. A list that is written in
another way is read whole, and comes to the same.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Final

from harness.canonical import Json, canonical_json, content_hash
from harness.errors import ArtifactError
from harness.evidence.disk import machine_refusals
from harness.regular_file import open_regular_file, read_regular_file
from harness.strict_json import StrictJsonError, decode_document

LISTS: Final = ("task_ids", "eligible_task_ids", "excluded_task_ids", "common")
_OPENED: Final = re.compile(rf'\s*"(?:{"|".join(LISTS)})": \[\n')
_ITEM: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*")(,?)\n')
_CLOSED: Final = re.compile(r"\s*\](,?)\n")


def list_identity(task_ids: list[str]) -> dict[str, Json]:
    """Return the number and the hash of a list of ids."""
    return {"count": len(task_ids), "hash": content_hash(task_ids)}


def read_slim(path: Path) -> dict[str, Json]:
    """Read a report; each list of ids becomes `{count, hash}`.

    Raises ArtifactError for what is no strict JSON object.
    """
    with machine_refusals("read a contamination report", path):
        try:
            return _Slimming(path).document()
        except (StrictJsonError, UnicodeDecodeError) as error:
            raise ArtifactError(
                "eval_artifact_invalid",
                "a contamination report is no strict JSON object",
                where=path.name,
                expected="the file as the run wrote it",
                actual=str(error)[:200],
                recovery="bring back an intact copy of the run folder",
            ) from None


class _OtherLayoutError(Exception):
    """A list that is not laid out as `run` does it."""


class _Slimming:
    def __init__(self, path: Path) -> None:
        self.path = path
        # Nobody who wrote the file can know it, so nobody can state a list's hash.
        self.mark = secrets.token_hex(16)
        self.read: dict[str, dict[str, Json]] = {}

    def document(self) -> dict[str, Json]:
        try:
            with (
                open_regular_file(self.path) as stream,
                TextIOWrapper(stream, encoding="utf-8", newline="\n") as lines,
            ):
                text = "".join(self.slim_lines(lines))
            value = decode_document(text.encode())
        except _OtherLayoutError:
            value = decode_document(read_regular_file(self.path))
        if not isinstance(value, dict):
            raise StrictJsonError("not_an_object", "the document is no object")
        slim: dict[str, Json] = self.restored(value)
        return slim

    def slim_lines(self, lines: IO[str]) -> Iterator[str]:
        for line in lines:
            if _OPENED.fullmatch(line) is None:
                yield line
                continue
            identity, comma = _hashed(lines)
            mark = f"{self.mark}{len(self.read)}"
            self.read[mark] = identity
            yield f'{line.rstrip()[:-1]}"{mark}"{comma}\n'

    def restored(self, value: Json, name: str = "") -> Json:
        if name in LISTS:
            if isinstance(value, str) and value in self.read:
                return self.read[value]
            is_list = isinstance(value, list)
            return list_identity(value) if is_list else {"no list": value}
        if isinstance(value, dict):
            return {key: self.restored(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.restored(inner) for inner in value]
        return value


def _hashed(lines: IO[str]) -> tuple[dict[str, Json], str]:
    digest = hashlib.sha256(b"[")
    count, more = 0, True
    for line in lines:
        item = _ITEM.fullmatch(line)
        if item is not None and more:
            text = item[1] if item[1].isascii() and "\\" not in item[1] else None
            canonical = text or canonical_json(json.loads(item[1]))
            digest.update(b"," * bool(count) + canonical.encode())
            count += 1
            more = bool(item[2])
            continue
        closed = _CLOSED.fullmatch(line)
        if closed is not None and not more:
            digest.update(b"]")
            return {"count": count, "hash": f"sha256:{digest.hexdigest()}"}, closed[1]
        break
    raise _OtherLayoutError
