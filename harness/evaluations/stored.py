"""Records as they lie on disk: read strictly, checked against themselves, found.

A run's record lies in its folder. Evaluations that were made of it later lie in folders
of their own beside it, and name it by the hash of its record. Nothing else connects
them, so a folder that was moved away is not found and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file, json_equal
from harness.errors import ArtifactError, FairtrialError, Violation
from harness.evaluations.numbers import plain_numbers
from harness.evaluations.protocol import GROUPS, fingerprint
from harness.evaluations.record import (
    RECORD_FILE,
    RECORD_VERSION,
    is_of_another_version,
)
from harness.evidence.artifacts import read_json_artifact

COMPLETED: Final = "completed"
_MEMBERS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "record_version": str,
    "record_id": str,
    "kind": str,
    "status": str,
    "error": (dict, type(None)),
    "parent": (dict, type(None)),
    "protocol": dict,
    "primary_metric": dict,
    "scorer": dict,
    "subjects": list,
    "rescorable": dict,
    "holdout": (dict, type(None)),
    "artifacts": dict,
}
"""Members that every record has, with their types."""
_SUBJECT: Final[Mapping[str, type]] = {
    "name": str,
    "role": str,
    "model": dict,
    "metrics": dict,
    "conditions": dict,
    "decoding": dict,
    "protocol": dict,
}


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


def read_stored(folder: Path) -> StoredRecord:
    """Read and check the record in a folder.

    Raises ArtifactError with everything that is wrong with it.
    """
    path = folder / RECORD_FILE
    if not path.is_file():
        raise _unusable(
            [Violation("eval_artifact_invalid", path.name, f"{folder.name} has none")]
        )
    payload = read_json_artifact(path)
    problems = list(problems_of(payload))
    if problems:
        raise _unusable(problems)
    return StoredRecord(folder, payload, hash_file(path))


def problems_of(payload: Json) -> Iterator[Violation]:
    """Yield everything that a record says wrongly of itself."""
    if not isinstance(payload, dict):
        yield _problem("", "a JSON object", type(payload).__name__)
        return
    sound = True
    for name, kinds in _MEMBERS.items():
        if not isinstance(payload.get(name), kinds):
            sound = False
            yield _problem(name, "a member of a record", "another form or nothing")
    if is_of_another_version(payload):
        version = payload["record_version"]
        yield _problem(
            "record_version", RECORD_VERSION, f"{version}, of another version"
        )
    if sound:
        yield from _protocol_problems(payload["protocol"])
        yield from _subject_problems(payload["subjects"])
        yield from _metric_problems(payload["primary_metric"])


def _protocol_problems(protocol: Mapping[str, Json]) -> Iterator[Violation]:
    groups, version = protocol.get("fields"), protocol.get("version")
    if not isinstance(groups, dict) or not isinstance(version, str):
        yield _problem("protocol", "version, fields and fingerprint", "others")
        return
    if any(not isinstance(groups.get(name), dict) for name in GROUPS):
        yield _problem("protocol.fields", ", ".join(GROUPS), ", ".join(groups))
        return
    if not json_equal(plain_numbers(groups), groups):
        yield _problem("protocol.fields", "whole numbers as integers", "floats")
    own, stated = fingerprint(groups, version), protocol.get("fingerprint")
    if stated != own:
        yield _problem("protocol.fingerprint", own, str(stated))


def _subject_problems(subjects: list[Json]) -> Iterator[Violation]:
    names = []
    for index, subject in enumerate(subjects):
        where = f"subjects[{index}]"
        if not isinstance(subject, dict):
            yield _problem(where, "an object", type(subject).__name__)
            continue
        names.append(subject.get("name"))
        for name, kind in _SUBJECT.items():
            if not isinstance(subject.get(name), kind):
                yield _problem(f"{where}.{name}", kind.__name__, "another form")
    if len(set(map(str, names))) != len(names):
        yield _problem("subjects", "names that name one subject each", str(names))


def _metric_problems(primary: Mapping[str, Json]) -> Iterator[Violation]:
    choices = primary.get("choices")
    if not isinstance(choices, list) or primary.get("name") not in choices:
        yield _problem(
            "primary_metric", "a name among its choices", str(primary.get("name"))
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
    """Return a run's own record and those that were made of it later, in this order.

    Raises ArtifactError where the run's own record cannot be read.
    """
    own = read_stored(run)
    found = [own]
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


def uses_before(folder: Path, rows_sha256: str) -> int:
    """Count the completed evaluations beside a folder that consulted the same rows."""
    return sum(
        each.is_completed and each.rows.get("sha256") == rows_sha256
        for each in records_beside(folder)
    )


def _problem(where: str, expected: str, actual: str) -> Violation:
    return Violation(
        "eval_artifact_invalid",
        f"{RECORD_FILE}, {where}" if where else RECORD_FILE,
        "the record does not say what a record says",
        expected,
        actual[:200],
        "bring back the folder as it was written",
    )


def _unusable(problems: list[Violation]) -> ArtifactError:
    return ArtifactError(
        problems[0].code, problems[0].problem, violations=tuple(problems)
    )
