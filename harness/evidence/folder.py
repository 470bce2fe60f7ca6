"""A run folder: absent, empty, unfinished or finished, and whose it is.

A folder is finished when it has its manifest, which is written last. It is
unfinished when it holds anything else that a run writes. A folder belongs to one
eval config; another config, or files of somebody else, are refused. Locks, files
that were not completed and torn tails say nothing about a folder's state, so no
moment at which a run dies can make its folder unusable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from harness.errors import ArtifactError, UsageError
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.disk import machine_refusals
from harness.evidence.episode_log import EPISODE_LOG
from harness.evidence.lock import LOCK_FILE, RunLock, require_unlocked
from harness.evidence.log_scan import stream_entries
from harness.evidence.manifest import MANIFEST_FILE
from harness.evidence.plan_file import PLAN_FILE

ARTIFACT_FILES: Final[dict[str, str]] = {
    "resolved_eval_config": "resolved_eval_config.json",
    "source_verification_report": "source_verification_report.json",
    "contamination_report": "contamination_report.json",
    "eval_plan": PLAN_FILE.file_name,
    "candidate_io_cache": CANDIDATE_LOG.file_name,
    "tool_trace_cache": EPISODE_LOG.file_name,
    "eval_report": "eval_report.json",
    "eval_task_results": "eval_task_results.parquet",
    "report": "report.html",
    "eval_record": "eval_record.json",
}
"""File names of a run folder, the manifest apart, in the order of writing."""
RESCORED_FILE: Final = "eval_record_files.json"
"""The last file of a rescoring, which is a folder of its own."""
PARENT_FOLDER: Final = "parent"
"""Where a rescoring keeps the run that it rests on."""
_BOUND: Final = ("resolved_eval_config.json", "eval_report.json", MANIFEST_FILE)
"""JSON files that name the config they belong to."""
_GATE_FILES: Final = frozenset(
    {
        "source_verification_report.json",
        "source_verification_failure.json",
        "contamination_report.json",
        "contamination_failure.json",
    }
)
"""Written and replaced by the gates; alone they leave nothing to resume."""
_SCAFFOLD: Final = re.compile(re.escape(LOCK_FILE) + r"|\..+\.tmp|.+\.torn-[0-9]+")


class FolderState(StrEnum):
    """What a run finds at its output folder."""

    ABSENT = "absent"
    EMPTY = "empty"
    UNFINISHED = "unfinished"
    FINISHED = "finished"


def require_outside(run: Path, output: Path) -> None:
    """Raise UsageError (`eval_cli_invalid`) for an output in the folder of a run."""
    if run.resolve() in output.resolve().parents:
        raise UsageError(
            "eval_cli_invalid",
            "a run's folder is never written to",
            where=f"--output {output}",
            expected="a place outside the run's folder",
            recovery="name a place beside it",
        )


class RunFolder:
    """The output folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """Return the path of an artifact by its name in the manifest."""
        return self.path / ARTIFACT_FILES[name]

    @property
    def manifest(self) -> Path:
        """The path of the manifest."""
        return self.path / MANIFEST_FILE

    def state(self) -> FolderState:
        """Look at the folder.

        Raises ArtifactError (`eval_cli_artifact_conflict`) for a folder that holds
        files and nothing of a run, or a rescoring, and for a file.
        """
        if self.path.is_file():
            raise _file(self.path)
        with machine_refusals("look at the output folder", self.path):
            if not self.path.exists():
                return FolderState.ABSENT
            names = {entry.name for entry in self.path.iterdir()} - _GATE_FILES
        if MANIFEST_FILE in names:
            return FolderState.FINISHED
        if RESCORED_FILE in names:
            raise _rescoring(self.path)
        # Evaluations of every kind have a record, so it alone makes no run.
        if names & set(ARTIFACT_FILES.values()) - {ARTIFACT_FILES["eval_record"]}:
            return FolderState.UNFINISHED
        foreign = sorted(n for n in names if not _SCAFFOLD.fullmatch(n))
        if foreign:
            raise ArtifactError(
                "eval_cli_artifact_conflict",
                "the folder holds files that no run wrote",
                where=str(self.path),
                expected="the folder of a run, or a place for a new one",
                actual=", ".join(foreign[:5]),
                recovery="name the folder of a run, or choose another output folder",
            )
        return FolderState.EMPTY

    def enter(self, eval_config_hash: str, *, resume: bool) -> FolderState:
        """Decide whether a run with this config may use the folder as it stands.

        Raises ArtifactError: `eval_cli_artifact_conflict` when the folder belongs
        to another config or somebody else, `eval_run_unfinished` for an unfinished
        run without `resume`. Raises EvidenceError (`eval_run_in_use`) while another
        process goes on with it.
        """
        state = self.state()
        for name, recorded in self._recorded_configs():
            if recorded != eval_config_hash:
                raise ArtifactError(
                    "eval_cli_artifact_conflict",
                    "the output folder holds a run of another config",
                    where=name,
                    expected=eval_config_hash,
                    actual=recorded,
                    recovery="choose a new output folder for the changed config",
                )
        if state is FolderState.UNFINISHED and not resume:
            require_unlocked(self.path)
            raise ArtifactError(
                "eval_run_unfinished",
                "the output folder holds an unfinished run",
                where=str(self.path),
                expected="a finished run, or no run",
                recovery="`fairtrial run CONFIG --resume` reuses what is complete",
            )
        return state

    def recorded_config_hash(self) -> str | None:
        """Return the config that the folder belongs to; None when it names none."""
        return next((recorded for _, recorded in self._recorded_configs()), None)

    def _recorded_configs(self) -> Iterator[tuple[str, str]]:
        for name in _BOUND:
            path = self.path / name
            if path.exists():
                payload = read_json_artifact(path)
                recorded = payload.get("eval_config_hash") if payload else None
                yield name, str(recorded)
        path = self.file("eval_plan")
        if path.exists():
            header = next(stream_entries(path, PLAN_FILE), None)
            recorded = (
                "none"
                if header is None
                else header.payload()["header"]["eval_config_hash"]
            )
            yield path.name, recorded

    def create(self) -> None:
        """Make the folder, with its parents, for this user alone."""
        with machine_refusals("make the output folder", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)

    def torn_tails(self) -> dict[str, int]:
        """Return the torn ends of logs that were set aside here, sizes in bytes."""
        return {
            path.name: path.stat().st_size
            for path in sorted(self.path.glob("*.torn-*"))
        }

    def lock(self, *, started_at: str) -> RunLock:
        """Take the folder or raise EvidenceError (`eval_run_in_use`)."""
        return RunLock.acquire(self.path, started_at=started_at)


def _file(path: Path) -> ArtifactError:
    return ArtifactError(
        "eval_cli_artifact_conflict",
        "this is a file, and not the folder of a run",
        where=str(path),
        expected="a run folder",
        actual="a file",
        recovery="`fairtrial verify` reads a bundle as it is; `tar -xf` gives its run "
        "folder back",
    )


def _rescoring(path: Path) -> ArtifactError:
    run = path / PARENT_FOLDER
    return ArtifactError(
        "eval_cli_artifact_conflict",
        "the folder holds a rescoring, and this is done with a run",
        where=str(path),
        expected="a run folder",
        actual=f"a record of another scoring; its run is in {run}",
        recovery=f"name {run}; `fairtrial verify`, `replay` and `explain` take the "
        "rescoring itself",
    )
