"""What a run was asked with, kept in its folder: the config's meaning, the data set.

The copy is made before the first turn is asked and everything after reads the copy, so
a folder can be worked out again alone, and a data set that changes beside it changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.config.teacher_forced import TeacherForcedConfig
from harness.config.teacher_forced_document import KIND
from harness.errors import ArtifactError, SourceError
from harness.evidence.artifacts import (
    read_json_artifact,
    write_json_artifact,
    write_once,
)
from harness.evidence.folder import ARTIFACT_FILES, RunFolder
from harness.evidence.manifest import MANIFEST_FILE
from harness.predictions.mlperf_dataset import is_parquet
from harness.regular_file import open_regular_file
from harness.run.settings import require_executable
from harness.run.teacher_forced.history import RowUse, read_taught
from harness.run.teacher_forced.requests import RequestPlan

EVAL_SCOPE: Final = "teacher_forced"
CONFIG_FILE: Final = ARTIFACT_FILES["resolved_eval_config"]
DATASET_FILES: Final = ("dataset.jsonl", "dataset.parquet")
_READ_SIZE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FrozenInputs:
    """The inputs of a run, as its folder keeps them."""

    config: TeacherForcedConfig
    dataset: Path


def request_plan(config: TeacherForcedConfig, dataset: Path) -> RequestPlan:
    """Read a data set as the requests of a run; raises ScoringError for its rows."""
    asking = config.asking
    use = RowUse(
        reasoning=config.candidate.echo_reasoning,
        delays=asking.inject_tool_delay,
        overrides=asking.row_overrides,
    )
    return RequestPlan(config, read_taught(dataset, use))


def freeze(folder: RunFolder, config: TeacherForcedConfig) -> FrozenInputs:
    """Write config and data set into the folder once.

    Raises SourceError (`eval_predictions_drift`) for a data set that changed since the
    config was read, ArtifactError where the folder keeps another one.
    """
    # First, for a folder that has it is a run's and whose it is.
    write_json_artifact(folder.path / CONFIG_FILE, config.resolved_document())
    source = config.paths.dataset
    kept = folder.path / DATASET_FILES[is_parquet(source)]
    found = write_once(kept, _pieces(source))
    if found != config.dataset.content_hash:
        kept.unlink()
        raise SourceError(
            "eval_predictions_drift",
            "the data set changed after the config was read",
            where=source.name,
            expected=config.dataset.content_hash,
            actual=found,
            recovery="start again when nothing writes the file",
        )
    return FrozenInputs(config, kept)


def is_turns_run(folder: Path) -> bool:
    """Tell whether a folder holds a run of this kind; raises ArtifactError."""
    resolved = _resolved(folder)
    if resolved is None:
        manifest = folder / MANIFEST_FILE
        stated = read_json_artifact(manifest) if manifest.is_file() else None
        return isinstance(stated, dict) and stated.get("eval_scope") == EVAL_SCOPE
    meaning = resolved.get("semantic_payload") if isinstance(resolved, dict) else None
    return isinstance(meaning, dict) and meaning.get("kind") == KIND


def refuse_turns_run(folder: Path) -> None:
    """Refuse a run of this kind by name; raises EvidenceError."""
    require_executable(_resolved(folder))


def _resolved(folder: Path) -> Json:
    file = folder / CONFIG_FILE
    return read_json_artifact(file) if file.is_file() else None


def read_frozen(folder: RunFolder) -> FrozenInputs:
    """Return what a run was asked with; raises ArtifactError or EvidenceError."""
    config = TeacherForcedConfig.from_resolved(
        read_json_artifact(folder.path / CONFIG_FILE)
    )
    for name in DATASET_FILES:
        dataset = folder.path / name
        if dataset.is_file() and hash_file(dataset) == config.dataset.content_hash:
            return FrozenInputs(config, dataset)
    raise ArtifactError(
        "eval_artifact_invalid",
        "the folder does not keep the data set that was asked",
        where=" or ".join(DATASET_FILES),
        expected=config.dataset.content_hash,
        recovery="bring back the folder as the run wrote it",
    )


def _pieces(source: Path) -> Iterator[bytes]:
    with open_regular_file(source) as stream:
        while piece := stream.read(_READ_SIZE):
            yield piece
