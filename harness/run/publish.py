"""The last step of a run: write what follows from its evidence.

The order is fixed and the manifest is last, so a folder with a manifest is whole. A
run that dies in between writes the same files again when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.canonical import Json, hash_file
from harness.evidence.artifacts import (
    read_json_artifact,
    write_json_artifact,
    write_once,
)
from harness.evidence.disk import machine_refusals
from harness.evidence.folder import ARTIFACT_FILES, RunFolder
from harness.evidence.manifest import RunTiming, build_manifest, write_manifest
from harness.evidence.plan_file import PlanHeader
from harness.evidence.runtime_facts import runtime_facts
from harness.evidence.task_table import TaskTableWriter
from harness.run.record import run_record
from harness.run.recorded import EvidenceFile
from harness.run.report import aggregate_hashes, build_report
from harness.run.score import ScoredCandidate, TakeRow

_RECORD = "eval_record"
_DERIVED = ("eval_report", "eval_task_results", "report", _RECORD)
"""Artifacts that follow from the evidence."""


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """A run whose every episode is recorded and scored."""

    header: PlanHeader
    scored: tuple[ScoredCandidate, ...]
    files: Mapping[str, EvidenceFile]
    """The evidence by its names in the manifest."""
    containment: Mapping[str, Json]
    """How pack code was contained; empty where none ran."""


def publish_run(
    folder: RunFolder,
    run: CollectedRun,
    *,
    max_stop_share: float,
    started: datetime,
    render_page: Callable[[Mapping[str, Json]], str],
) -> dict[str, Json]:
    """Write the artifacts that follow from a run and return its report."""
    header = run.header
    report = build_report(header, run.scored, max_stop_share=max_stop_share)
    write_json_artifact(folder.file("eval_report"), report)
    torn = folder.torn_tails()
    page = render_page({**report, "torn_tails": torn})
    write_once(folder.file("report"), [page.encode("utf-8")])
    artifacts = _artifacts(folder, run.files)
    resolved = read_json_artifact(folder.file("resolved_eval_config"))
    record = run_record(header, resolved["semantic_payload"], report, artifacts)
    written = write_json_artifact(folder.file(_RECORD), record)
    manifest = build_manifest(
        report=report,
        scoring_policy_hash=header.scoring_policy_hash,
        runtime=runtime_facts(),
        source={
            "run_id": header.source_run_id,
            "verification_identity": header.source_verification_identity,
            "oracle_verification_identity": header.oracle_verification_identity,
        },
        candidates=[
            {"alias": planned.alias, "canonical_id": planned.canonical_id}
            for planned in header.candidates
        ],
        candidate_aggregates=aggregate_hashes(run.scored),
        artifacts={**artifacts, _RECORD: (ARTIFACT_FILES[_RECORD], written)},
        evidence={name: file.root for name, file in run.files.items()},
        containment=run.containment,
        torn_tails=torn,
        timing=RunTiming(started, datetime.now(UTC)),
    )
    write_manifest(folder.path, manifest)
    return report


def discard_unfinished(folder: RunFolder) -> None:
    """Remove what a killed process had worked out before it came to the manifest.

    A resumed run may hold other evidence since then, an endpoint that is back for
    one; without a manifest nothing that follows from evidence was ever published.
    """
    for name in _DERIVED:
        path = folder.file(name)
        with machine_refusals("replace an unfinished artifact", path):
            path.unlink(missing_ok=True)


@contextmanager
def task_table(folder: RunFolder, *, wanted: bool) -> Iterator[TakeRow]:
    """Take the rows of the task table, which appears when all are there."""
    if not wanted:
        yield lambda _: None
        return
    with TaskTableWriter(folder.file("eval_task_results")) as table:
        yield table.append


def _artifacts(
    folder: RunFolder, files: Mapping[str, EvidenceFile]
) -> dict[str, tuple[str, str]]:
    """Return file name and content hash of everything before the record."""
    return {
        name: (
            file,
            files[name].content_hash if name in files else hash_file(folder.file(name)),
        )
        for name, file in ARTIFACT_FILES.items()
        if name != _RECORD and folder.file(name).exists()
    }
