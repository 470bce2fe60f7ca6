"""What a generator leaves behind: one line a manifest row, in manifest order.

A failed generation has a code, no text and no generated tokens. `truncated` means that
no end token came within the cap. Text is kept as it was decoded and never trimmed.
The generator reads its manifest more strictly than the scorer does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.errors import EvidenceError, UsageError
from harness.evidence.disk import discarded_on_failure, sync_folder, temporary_beside
from harness.predictions.digests import require_sha256
from harness.predictions.json_lines import line_bytes, read_rows

MANIFEST_VERSION: Final = "barun-sft-example-v1"
_MANIFEST_FIELDS: Final = frozenset({"schema_version", "id", "prompt", "target"})


@dataclass(frozen=True, slots=True)
class PredictionLine:
    """One recorded generation; raises ValueError where it contradicts itself."""

    id: str
    prediction_raw: str | None
    prompt_tokens: int | None
    """None where the engine does not report counts."""
    generated_tokens: int | None
    """The end token included."""
    truncated: bool = False
    generation_failure: str | None = None

    def __post_init__(self) -> None:
        failure = self.generation_failure
        if failure is None:
            return
        if failure.split() != [failure]:
            raise ValueError(f"failure code {failure!r} is empty or has whitespace")
        if self.prediction_raw is not None or self.generated_tokens:
            raise ValueError(f"{self.id}: a failed generation has no text")

    def as_record(self) -> dict[str, Json]:
        """Return the line's object."""
        return {
            "generated_tokens": self.generated_tokens,
            "generation_failure": self.generation_failure,
            "id": self.id,
            "prediction_raw": self.prediction_raw,
            "prompt_tokens": self.prompt_tokens,
            "truncated": self.truncated,
        }


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """One row that a generator answers."""

    id: str
    prompt: str
    target: str
    metadata: Mapping[str, Json]


def write_predictions(path: Path, lines: Iterable[PredictionLine]) -> None:
    """Write the lines so that the file is there whole or not at all.

    Raises UsageError (`eval_output_exists`) where anything has that name.
    """
    write_new_file(path, (line_bytes(line.as_record()) for line in lines))


def write_new_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file whole; raise UsageError where anything has that name."""
    temporary = temporary_beside(path)
    with discarded_on_failure(temporary):
        with temporary.open("wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise UsageError(
                "eval_output_exists",
                "the file exists already",
                where=str(path),
                recovery="choose another name; recorded predictions are not replaced",
            ) from None
        temporary.unlink()
    sync_folder(path.parent)


def read_generation_manifest(
    path: Path, *, declared_sha256: str | None = None
) -> Iterator[GenerationRow]:
    """Yield the rows to answer; a declared hash is compared before the first.

    Raises SourceError for another file and EvidenceError for a row with other fields,
    empty or repeated ids, or another schema version.
    """
    if declared_sha256 is not None:
        require_sha256(path, declared_sha256, by="the caller")
    seen: set[str] = set()
    for number, row in enumerate(read_rows(path), 1):
        problem = _manifest_problem(row, seen)
        if problem:
            raise EvidenceError(
                "eval_predictions_invalid",
                f"a manifest row cannot be answered: {problem}",
                where=f"{path.name}:{number}",
                expected=f"{MANIFEST_VERSION} with id, prompt, target, metadata",
                recovery="write the manifest again",
            )
        seen.add(row["id"])
        yield GenerationRow(
            row["id"], row["prompt"], row["target"], row.get("metadata", {})
        )


def membership_sha256(ids: Iterable[str]) -> str:
    """Return the hash of a set of row ids, in whatever order they come."""
    return sha256(("\n".join(sorted(ids)) + "\n").encode()).hexdigest()


def _manifest_problem(row: Mapping[str, Json], seen: set[str]) -> str:
    if row.get("schema_version") != MANIFEST_VERSION:
        return f"schema_version is {row.get('schema_version')!r}"
    other = row.keys() - _MANIFEST_FIELDS - {"metadata"}
    if other:
        return f"unknown fields {sorted(other)}"
    for name in ("id", "prompt", "target"):
        if not isinstance(row.get(name), str) or not row[name]:
            return f"{name} is no text"
    if row["id"] in seen:
        return f"id {row['id']!r} stands twice"
    if not isinstance(row.get("metadata", {}), dict):
        return "metadata is no object"
    return ""
