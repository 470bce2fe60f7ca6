"""From a YAML file of kind `mlperf-agentic` to a config, or to all its violations.

Two configs that mean the same have one `eval_config_hash`: the data set enters by its
content, the output folder not at all. The meaning alone rebuilds the config, so that a
run folder can be worked out again without the file that started it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import PrivateAttr, ValidationError

from harness.canonical import Json, content_hash, hash_file
from harness.config.document import SCHEMA_VERSION, CandidateSection, Closed
from harness.config.evaluation import FileMeaning
from harness.config.load import check_version, read_document
from harness.config.resolved import rebuilt
from harness.config.rules import check_candidates
from harness.config.scan import scan
from harness.config.teacher_forced_document import (
    AskingLimits,
    AskingSection,
    OneCandidate,
    SharePublication,
    TeacherForcedDocument,
)
from harness.config.violations import Violations, seen
from harness.errors import ConfigError

_RESOLVED_KEYS: Final = frozenset(
    {"schema_version", "config_status", "eval_config_hash", "semantic_payload"}
)


@dataclass(frozen=True, slots=True)
class TeacherForcedPaths:
    """Absolute paths of one loaded config; never part of an identity."""

    dataset: Path
    output_dir: Path


class TeacherForcedConfig(Closed):
    """One evaluation over recorded conversations."""

    schema_version: Literal["1"]
    kind: Literal["mlperf-agentic"]
    dataset: FileMeaning
    asking: AskingSection
    limits: AskingLimits
    candidates: OneCandidate
    publication: SharePublication
    _paths: TeacherForcedPaths | None = PrivateAttr(default=None)

    @classmethod
    def from_meaning(
        cls, payload: dict[str, Json], paths: TeacherForcedPaths | None = None
    ) -> TeacherForcedConfig:
        """Build a config from its semantic payload; raise ValidationError."""
        config = cls.model_validate(payload)
        config._paths = paths
        return config

    @classmethod
    def from_resolved(cls, payload: Json) -> TeacherForcedConfig:
        """Rebuild the config from `resolved_eval_config.json`.

        Raises EvidenceError (`eval_artifact_invalid`) unless every field follows from
        the meaning that the document states.
        """
        return rebuilt(payload, _RESOLVED_KEYS, cls.from_meaning)

    @property
    def paths(self) -> TeacherForcedPaths:
        """Where the files are; raises ConfigError for a config rebuilt offline."""
        if self._paths is None:
            raise ConfigError(
                "eval_config_path_invalid",
                "a config that was rebuilt from a run folder has no paths",
                expected="a config loaded from its own file",
                recovery="use the config file",
            )
        return self._paths

    @property
    def candidate(self) -> CandidateSection:
        """The one candidate."""
        return self.candidates[0]

    @property
    def eval_config_hash(self) -> str:
        """The content hash of the meaning."""
        return content_hash(self.model_dump(mode="json"))

    def resolved_document(self) -> dict[str, Json]:
        """Return the payload of `resolved_eval_config.json`; it holds no path."""
        return {
            "schema_version": SCHEMA_VERSION,
            "config_status": "ready",
            "eval_config_hash": self.eval_config_hash,
            "semantic_payload": self.model_dump(mode="json"),
        }


def load_teacher_forced_config(path: Path | str) -> TeacherForcedConfig:
    """Load a config of this kind.

    Raises ConfigError with every independent violation, in file order.
    """
    file = Path(path).absolute()
    violations = read_document(file)
    check_version(violations)
    scan(violations)
    document = _check_shape(violations)
    check_candidates(violations)
    paths = _paths(file, violations)
    found = None if paths is None else _dataset_hash(paths.dataset, violations)
    violations.raise_if_any()
    if document is None or paths is None:
        raise AssertionError("a refused document left no violation")
    meaning: dict[str, Any] = document.model_dump(
        mode="json", exclude={"config_status", "outputs"}
    )
    meaning["dataset"] = {"content_hash": found}
    return TeacherForcedConfig.from_meaning(meaning, paths)


def _check_shape(violations: Violations) -> TeacherForcedDocument | None:
    try:
        return TeacherForcedDocument.model_validate(violations.raw)
    except ValidationError as error:
        violations.add_shape_errors(
            error.errors(include_url=False), TeacherForcedDocument
        )
    return None


def _paths(file: Path, violations: Violations) -> TeacherForcedPaths | None:
    dataset = violations.value("dataset", "path")
    output = violations.value("outputs", "output_dir")
    if not isinstance(dataset, str) or not isinstance(output, str):
        return None
    paths = TeacherForcedPaths(
        (file.parent / dataset).resolve(), (file.parent / output).resolve()
    )
    if paths.output_dir in paths.dataset.parents or paths.output_dir == paths.dataset:
        violations.add(
            "eval_config_path_invalid",
            ("outputs", "output_dir"),
            "the data set lies in the output folder",
            expected="a folder of its own",
            actual=seen(output),
            recovery="name another folder",
        )
    return paths


def _dataset_hash(dataset: Path, violations: Violations) -> str | None:
    try:
        found = hash_file(dataset)
    except OSError as error:
        violations.add(
            "eval_config_path_invalid",
            ("dataset", "path"),
            "a file that the config names cannot be read",
            expected="a readable file, from the config's own folder",
            actual=error.strerror or type(error).__name__,
            recovery="correct the path or put the file there",
        )
        return None
    declared = violations.value("dataset", "sha256")
    if isinstance(declared, str) and found != f"sha256:{declared}":
        violations.add(
            "eval_predictions_drift",
            ("dataset", "sha256"),
            "the data set is not the declared one",
            expected=declared,
            actual=found.removeprefix("sha256:"),
            recovery="bring back the declared file, or declare this one",
        )
    return found
