"""Records as they lie on disk: read strictly, checked against themselves, found.

A run's record lies in its folder. Evaluations that were made of it later lie in folders
of their own beside it, and name it by the hash of its record. Nothing else connects
them, so a folder that was moved away is not found and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.errors import ArtifactError, FairtrialError, Violation
from harness.evaluations.form import problems_of
from harness.evaluations.record import RECORD_FILE
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import RESCORED_FILE
from harness.evidence.manifest import MANIFEST_FILE

COMPLETED: Final = "completed"
PUT_ASIDE: Final = "eval_record.failed-*.json"
"""Records of failed attempts that a resumed evaluation keeps in its folder."""
_BINDING: Final = {
    MANIFEST_FILE: ("artifacts", "eval_record", "content_hash"),
    RESCORED_FILE: ("files", RECORD_FILE),
}
"""The last file of a folder, and where it names the hash of the record."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record with the place where it was read."""

    folder: Path
    payload: Mapping[str, Json]
    content_hash: str

    @property
    def record_id(self) -> str:
        """`original`, or `eval-` and twelve hex digits."""
        return str(self.payload["record_id"])

    @property
    def is_completed(self) -> bool:
        """Tell whether the evaluation came to its end."""
        return bool(self.payload["status"] == COMPLETED)

    @property
    def parent_hash(self) -> str | None:
        """The hash of the record that came before; None where there is none."""
        parent = self.payload["parent"]
        return None if parent is None else parent.get("record_hash")

    @property
    def rows(self) -> Json:
        """Which rows were consulted."""
        return self.payload["protocol"]["fields"]["rows"]


def read_stored(folder: Path, name: str = RECORD_FILE) -> StoredRecord:
    """Read and check the record in a folder.

    Raises ArtifactError with everything that is wrong with it.
    """
    path = folder / name
    if not path.is_file():
        raise _unusable(
            [Violation("eval_artifact_invalid", path.name, f"{folder.name} has none")]
        )
    payload = read_json_artifact(path)
    content_hash = hash_file(path)
    problems = [*problems_of(payload), *_unbound(path, content_hash)]
    if problems:
        raise _unusable(problems)
    return StoredRecord(folder, payload, content_hash)


def _unbound(path: Path, content_hash: str) -> Iterator[Violation]:
    """Yield that a record is not the one that the last file of its folder names."""
    if path.name != RECORD_FILE:
        return
    for last, keys in _BINDING.items():
        file = path.with_name(last)
        bound: Json = read_json_artifact(file) if file.is_file() else None
        for key in keys:
            bound = bound.get(key) if isinstance(bound, dict) else None
        if file.is_file() and bound != content_hash:
            yield Violation(
                "eval_artifact_invalid",
                path.name,
                "the record is not the one that its folder was finished with",
                f"{bound}, as {last} says",
                content_hash,
                "bring back an intact copy of the folder",
            )


def records_beside(folder: Path) -> Iterator[StoredRecord]:
    """Yield every readable record in this folder's parent, this folder's apart.

    They stand in the order of their folders' names. A folder whose record cannot be
    read is passed over: it belongs to somebody else.
    """
    own = folder.resolve()
    if not own.parent.is_dir():
        return
    for place in sorted(own.parent.iterdir()):
        if place == own or not (place / RECORD_FILE).is_file():
            continue
        try:
            yield read_stored(place)
        except FairtrialError:
            continue


def records_of_run(run: Path) -> list[StoredRecord]:
    """Return a run's own record, those put aside, and those that were made of it later.

    Raises ArtifactError where the run's own record cannot be read.
    """
    own = read_stored(run)
    found = [own, *_put_aside(run)]
    known = {own.content_hash}
    beside = list(records_beside(run))
    while True:
        # A later evaluation may itself have been evaluated again.
        more = [
            each
            for each in beside
            if each.parent_hash in known and each.content_hash not in known
        ]
        if not more:
            return found
        found += more
        known |= {each.content_hash for each in more}


def _put_aside(run: Path) -> Iterator[StoredRecord]:
    """Yield the records of attempts that failed before the run came to its end."""
    for path in sorted(run.glob(PUT_ASIDE)):
        with suppress(FairtrialError):
            yield read_stored(run, path.name)


def uses_before(folder: Path, rows_sha256: str) -> int:
    """Count the completed evaluations beside a folder that consulted the same rows."""
    return sum(
        each.is_completed and each.rows.get("sha256") == rows_sha256
        for each in records_beside(folder)
    )


def _unusable(problems: list[Violation]) -> ArtifactError:
    return ArtifactError(
        problems[0].code, problems[0].problem, violations=tuple(problems)
    )
