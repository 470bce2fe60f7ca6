"""The last step of a run: score the evidence and write the artifacts.

The order is fixed and the manifest is last, so a folder with a manifest is whole. A
run that dies in between writes the same files again when it is resumed.
"""

from __future__ import annotations

import platform
import sys
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from harness.canonical import Json, hash_file
from harness.evidence.artifacts import write_json_artifact, write_once
from harness.evidence.folder import ARTIFACT_FILES, RunFolder
from harness.evidence.manifest import (
    EVIDENCE_FILES,
    build_manifest,
    read_record_root,
    write_manifest,
)
from harness.evidence.plan_file import PlanHeader
from harness.evidence.task_table import TaskTableWriter
from harness.run.recorded import RunEvidence
from harness.run.report import aggregate_hashes, build_report
from harness.run.score import ScoredCandidate, score_run

_DEPENDENCIES: Final = (
    "anyio",
    "duckdb",
    "fairtrial",
    "httpx",
    "multiprocess",
    "pyarrow",
    "pydantic",
)


def publish_run(
    folder: RunFolder,
    *,
    containment: Mapping[str, Json],
    started: datetime,
    render_page: Callable[[Mapping[str, Json]], str],
) -> dict[str, Json]:
    """Score the folder's evidence, write its artifacts and return the report."""
    with RunEvidence(folder.path) as evidence:
        config, header = evidence.config, evidence.plan.header
        with TaskTableWriter(folder.file("eval_task_results")) as table:
            scored = score_run(evidence, table.append)
    report = build_report(
        header, scored, max_stop_share=config.publication.max_stop_share
    )
    write_json_artifact(folder.file("eval_report"), report)
    write_once(folder.file("report"), [render_page(report).encode("utf-8")])
    manifest = _manifest(folder, header, scored, report)
    manifest["containment"] = dict(containment)
    manifest["timing"] = {
        "started_at": started.isoformat(),
        "finished_at": datetime.now(UTC).isoformat(),
    }
    write_manifest(folder.path, manifest)
    return report


def _manifest(
    folder: RunFolder,
    header: PlanHeader,
    scored: tuple[ScoredCandidate, ...],
    report: Mapping[str, Json],
) -> dict[str, Json]:
    written = {
        name: (file, hash_file(folder.path / file))
        for name, file in ARTIFACT_FILES.items()
        if (folder.path / file).exists()
    }
    return build_manifest(
        report=report,
        scoring_policy_hash=header.scoring_policy_hash,
        runtime=_runtime(),
        source={
            "run_id": header.source_run_id,
            "verification_identity": header.source_verification_identity,
            "oracle_verification_identity": header.oracle_verification_identity,
        },
        candidates=[
            {"alias": planned.alias, "canonical_id": planned.canonical_id}
            for planned in header.candidates
        ],
        candidate_aggregates=aggregate_hashes(scored),
        artifacts=written,
        evidence={
            name: read_record_root(folder.file(name), EVIDENCE_FILES[name])
            for name in EVIDENCE_FILES
            if name in written
        },
    )


def _runtime() -> dict[str, Json]:
    """Describe where the run happened; null where nobody can tell."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "unidata_version": unicodedata.unidata_version,
        "dependencies": {name: _version(name) for name in _DEPENDENCIES},
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
