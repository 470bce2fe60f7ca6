"""A finished run opened for another reading: its evidence, bound to its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.canonical import Json, hash_file
from harness.errors import ArtifactError, EvidenceError
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import FolderState, RunFolder
from harness.evidence.manifest import MANIFEST_FILE, evidence_root
from harness.run.difference import differences
from harness.run.recorded import RunEvidence


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A finished run, open for reading."""

    folder: RunFolder
    evidence: RunEvidence
    manifest: dict[str, Json]
    manifest_hash: str
    """Content hash of the manifest, which names every file of the run."""


@contextmanager
def open_finished(path: Path) -> Iterator[OpenRun]:
    """Open a finished run.

    Raises ArtifactError for a folder without a finished run, EvidenceError where the
    evidence is damaged or is not what the manifest commits to.
    """
    folder = require_finished(path)
    manifest = read_json_artifact(folder.manifest)
    with RunEvidence(path) as evidence:
        _check_roots(manifest, evidence)
        yield OpenRun(folder, evidence, manifest, hash_file(folder.manifest))


def require_finished(path: Path) -> RunFolder:
    """Return the folder of a finished run; raise ArtifactError for any other."""
    folder = RunFolder(path)
    state = folder.state()
    if state is not FolderState.FINISHED:
        raise no_run(path, state)
    return folder


def no_run(path: Path, state: FolderState) -> ArtifactError:
    """Return the refusal of a folder that has no finished run."""
    unfinished = state is FolderState.UNFINISHED
    return ArtifactError(
        "eval_run_unfinished" if unfinished else "eval_artifact_invalid",
        "the folder holds an unfinished run"
        if unfinished
        else "there is no run in this folder",
        where=str(path),
        expected=f"a folder with {MANIFEST_FILE}",
        actual=state.value,
        recovery="finish it with `fairtrial run CONFIG --resume`"
        if unfinished
        else "name the output folder of a finished run",
    )


def _check_roots(manifest: Json, evidence: RunEvidence) -> None:
    """Refuse evidence that is whole in itself and not what the manifest names."""
    roots = evidence.roots()
    actual: dict[str, Json] = {
        "artifacts": True,
        "evidence": {name: root.as_payload() for name, root in roots.items()},
        "merkle_root": evidence_root(roots),
    }
    stated = manifest if isinstance(manifest, dict) else {}
    commits = {
        "artifacts": isinstance(stated.get("artifacts"), dict),
        "evidence": stated.get("evidence"),
        "merkle_root": stated.get("merkle_root"),
    }
    found = tuple(differences(MANIFEST_FILE, actual, commits))
    if found:
        raise EvidenceError(
            "eval_evidence_invalid",
            "the evidence is not what the manifest commits to",
            violations=found,
        )
