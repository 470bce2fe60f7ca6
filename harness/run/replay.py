"""`replay`: the whole run again from its evidence, and whether it comes out equal.

Everything is recomputed from the plan and the logs: episodes, scores, aggregates,
report and task table. What the folder states is then compared with it. Nothing is
sent, started or written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.canonical import Json, hash_file
from harness.errors import Violation
from harness.evaluations.record import is_of_another_version
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import ARTIFACT_FILES, RunFolder
from harness.evidence.log_reader import RecordUse
from harness.evidence.manifest import MANIFEST_FILE, manifest_hash
from harness.evidence.task_table import read_stretches
from harness.run.difference import RECOVERY, differences
from harness.run.finished import OpenRun, open_finished
from harness.run.record import record_beside
from harness.run.report import aggregate_hashes, build_report, cited_taxonomy
from harness.run.score import readable, score_run
from harness.run.settings import RESOLVED_FILE
from harness.run.table_comparison import TABLE_FILE, TableComparison


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out, and where the folder says something else."""

    report: dict[str, Json]
    aggregate_hashes: dict[str, str]
    differences: tuple[Violation, ...]
    requests: int
    """Requests whose records were used."""
    episodes: int
    records: dict[str, dict[str, RecordUse]]
    """Which records were used, by evidence file and type."""

    @property
    def is_equal(self) -> bool:
        """Tell whether everything came out as the folder states it."""
        return not self.differences


def replay_run(folder: Path) -> Replayed:
    """Recompute a finished run; raise ArtifactError if it is not finished.

    Raises EvidenceError or ScoringError where the evidence cannot be used at all.
    """
    with open_finished(folder) as run:
        config = run.evidence.config
        found = list(_manifest_differences(run.manifest))
        table = run.folder.file("eval_task_results")
        written = config.write_task_results
        # A table whose bytes changed is not opened: they can be anything.
        other_table = written and _table_differences(table, run.manifest)
        found.extend(other_table or ())
        compared = written and not other_table
        comparison = TableComparison(read_stretches(table) if compared else None)
        scored = score_run(run.evidence, comparison.take)
        with readable("eval_plan.jsonl, record 1"):
            report = build_report(
                run.evidence.plan.header,
                scored,
                max_stop_share=config.max_stop_share,
                taxonomy_hash=cited_taxonomy(run.manifest),
            )
        found.extend(_record_differences(run, report))
        records = {name: log.use() for name, log in run.evidence.logs().items()}
    hashes = aggregate_hashes(scored)
    found.extend(_report_differences(run.folder, report))
    found.extend(
        differences(
            f"{MANIFEST_FILE}, candidate_aggregates",
            hashes,
            run.manifest.get("candidate_aggregates"),
        )
    )
    found.extend(comparison.end())
    return Replayed(
        report,
        hashes,
        tuple(found),
        comparison.requests,
        comparison.rows,
        records,
    )


def _report_differences(
    folder: RunFolder, report: dict[str, Json]
) -> Iterator[Violation]:
    stored = read_json_artifact(folder.file("eval_report"))
    return differences("eval_report.json", report, stored)


def _record_differences(run: OpenRun, report: dict[str, Json]) -> Iterator[Violation]:
    file = ARTIFACT_FILES["eval_record"]
    with readable(RESOLVED_FILE):
        record = record_beside(
            run.evidence.plan.header,
            read_json_artifact(run.folder.file("resolved_eval_config"))[
                "semantic_payload"
            ],
            report,
            run.manifest,
        )
    path = run.folder.file("eval_record")
    stated = read_json_artifact(path) if path.exists() else None
    if is_of_another_version(stated):
        return iter(())
    return differences(file, record, stated)


def _manifest_differences(manifest: Mapping[str, Json]) -> Iterator[Violation]:
    return differences(
        f"{MANIFEST_FILE}, manifest_hash",
        manifest_hash(manifest),
        manifest.get("manifest_hash"),
    )


def _table_differences(
    table: Path, manifest: Mapping[str, Json]
) -> tuple[Violation, ...]:
    artifact = manifest["artifacts"].get("eval_task_results")
    named = artifact if isinstance(artifact, dict) else {}
    stated = str(named.get("content_hash", "no such file"))
    actual = hash_file(table) if table.is_file() else "no such file"
    if actual == stated != "no such file":
        return ()
    return (
        Violation(
            "eval_artifact_invalid",
            TABLE_FILE,
            "the task table is not the one that the run wrote",
            stated,
            actual,
            RECOVERY,
        ),
    )
