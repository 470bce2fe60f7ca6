"""`replay`: the whole run again from its evidence, and whether it comes out equal.

Everything is recomputed from the plan and the logs: episodes, scores, aggregates,
report and task table. What the folder states is then compared with it. Nothing is
sent, started or written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from harness.canonical import Json, canonical_json
from harness.errors import ArtifactError, Violation
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import FolderState, RunFolder
from harness.evidence.manifest import MANIFEST_FILE
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import read_task_rows
from harness.run.recorded import RunEvidence
from harness.run.report import aggregate_hashes, build_report
from harness.run.score import score_run

_RECOVERY = "bring back the folder as the run wrote it"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out, and where the folder says something else."""

    report: dict[str, Json]
    aggregate_hashes: dict[str, str]
    differences: tuple[Violation, ...]
    requests: int
    """Records of the candidate log that were used."""
    episodes: int

    @property
    def is_equal(self) -> bool:
        """Tell whether everything came out as the folder states it."""
        return not self.differences


def replay_run(folder: Path) -> Replayed:
    """Recompute a finished run; raise ArtifactError if it is not finished.

    Raises EvidenceError or ScoringError where the evidence cannot be used at all.
    """
    run_folder = RunFolder(folder)
    state = run_folder.state()
    if state is not FolderState.FINISHED:
        raise _unfinished(folder, state)
    with RunEvidence(folder) as evidence:
        comparison = _TableComparison(
            run_folder, written=evidence.config.write_task_results
        )
        scored = score_run(evidence, comparison.take)
        report = build_report(
            evidence.plan.header,
            scored,
            max_stop_share=evidence.config.max_stop_share,
        )
    hashes = aggregate_hashes(scored)
    differences = (
        *_report_differences(run_folder, report),
        *_hash_differences(run_folder, hashes),
        *comparison.end(),
    )
    return Replayed(report, hashes, differences, comparison.requests, comparison.rows)


def _unfinished(folder: Path, state: FolderState) -> ArtifactError:
    if state is FolderState.UNFINISHED:
        return ArtifactError(
            "eval_run_unfinished",
            "the folder holds an unfinished run",
            where=folder.name,
            expected=f"a folder with {MANIFEST_FILE}",
            recovery="finish it with `fairtrial run CONFIG --resume`",
        )
    return ArtifactError(
        "eval_artifact_invalid",
        "there is no run in this folder",
        where=folder.name,
        expected=f"a folder with {MANIFEST_FILE}",
        actual=state.value,
        recovery="name the output folder of a finished run",
    )


class _TableComparison:
    """Compares recomputed rows with the task table while both stream by."""

    def __init__(self, folder: RunFolder, *, written: bool) -> None:
        """Compare with nothing if the run's config did not ask for the table."""
        path = folder.file("eval_task_results")
        stored = read_task_rows(path) if path.exists() else iter(())
        self._stored = stored if written else None
        self._difference: Violation | None = None
        self.rows = 0
        self.requests = 0

    def take(self, row: TaskRow) -> None:
        """Compare one recomputed row with the next stored one."""
        self.requests += row.requests
        if self._stored is not None:
            self._compare(row, next(self._stored, None))
        self.rows += 1

    def end(self) -> tuple[Violation, ...]:
        """Return the first difference, a surplus of stored rows included."""
        if self._stored is not None:
            self._compare(None, next(self._stored, None))
        return () if self._difference is None else (self._difference,)

    def _compare(self, row: TaskRow | None, stored: TaskRow | None) -> None:
        if row == stored or self._difference is not None:
            return
        for name, ours, theirs in _cells(row, stored):
            if ours != theirs:
                self._difference = Violation(
                    "eval_artifact_invalid",
                    f"eval_task_results.parquet, row {self.rows}, column {name}",
                    "the task table is not what the evidence gives",
                    ours,
                    theirs,
                    _RECOVERY,
                )
                return


def _cells(row: TaskRow | None, stored: TaskRow | None) -> list[tuple[str, str, str]]:
    ours = {} if row is None else row.semantic_payload()
    theirs = {} if stored is None else stored.semantic_payload()
    names = ours or theirs
    return [
        (name, canonical_json(ours.get(name)), canonical_json(theirs.get(name)))
        for name in names
    ]


def _report_differences(
    folder: RunFolder, report: dict[str, Json]
) -> tuple[Violation, ...]:
    stored = read_json_artifact(folder.file("eval_report"))
    return tuple(_differences("eval_report.json", report, stored))


def _hash_differences(
    folder: RunFolder, hashes: dict[str, str]
) -> tuple[Violation, ...]:
    manifest = read_json_artifact(folder.manifest)
    return tuple(
        _differences(
            f"{MANIFEST_FILE}, candidate_aggregates",
            hashes,
            manifest.get("candidate_aggregates"),
        )
    )


def _differences(where: str, ours: Json, theirs: Json) -> list[Violation]:
    """Name the smallest places where two JSON values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            each
            for key in sorted(ours.keys() | theirs.keys())
            for each in _differences(f"{where}.{key}", ours.get(key), theirs.get(key))
        ]
    if isinstance(ours, list) and isinstance(theirs, list):
        pairs = enumerate(zip_longest(ours, theirs))
        return [
            each
            for index, (mine, other) in pairs
            for each in _differences(f"{where}[{index}]", mine, other)
        ]
    if canonical_json(ours) == canonical_json(theirs):
        return []
    return [
        Violation(
            "eval_artifact_invalid",
            where,
            "the folder states something else than its evidence gives",
            canonical_json(ours),
            canonical_json(theirs),
            _RECOVERY,
        )
    ]
