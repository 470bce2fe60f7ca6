"""`rescore`: a recorded run scored again, as of now or under another declared policy.

The run's folder is only read. What comes out is a folder of its own: a report, a task
table, a page and `eval_record.json`, which names the parent run by its manifest and
its evidence by its root, and lists every verdict that changed. Evidence is not copied:
whoever holds the parent folder can rescore it again and compare, since the same
evidence and policy give the same record. No clock is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.candidates.request import Endpoint
from harness.canonical import Json, canonical_bytes, content_hash, hash_bytes
from harness.errors import UsageError
from harness.evidence.artifacts import (
    artifact_bytes,
    read_json_artifact,
    write_json_artifact,
    write_once,
)
from harness.evidence.episode import EPISODE_VERSION
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import TaskTableWriter, read_task_rows
from harness.predictions.output_folder import new_folder, require_absent
from harness.run.finished import OpenRun, open_finished
from harness.run.policies import NamedPolicy, named_policy
from harness.run.report import aggregate_hashes, build_report
from harness.run.rescored_evidence import RescoredEvidence, require_changeable
from harness.run.score import ScoredCandidate, score_recorded, score_run
from harness.run.verdict_change import ChangeList
from harness.scoring.aggregate import AGGREGATE_VERSION
from harness.scoring.failures import ERROR_TAXONOMY_HASH
from harness.scoring.records import TASK_SCORE_VERSION

RECORD_FILE: Final = "eval_record.json"
RECORD_VERSION: Final = "1.0"
SCORER: Final[dict[str, Json]] = {
    "aggregate_version": AGGREGATE_VERSION,
    "episode_version": EPISODE_VERSION,
    "error_taxonomy_hash": ERROR_TAXONOMY_HASH,
    "task_score_version": TASK_SCORE_VERSION,
}
POLICY_CHANGED: Final = "rescore.policy"
"""Why a score under another policy than the run's own is not published."""
RenderPage = Callable[[Mapping[str, Json], str], str]
"""From a report and the record's id to a page."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What came out, as the new folder states it, beside the parent's report."""

    record: dict[str, Json]
    report: dict[str, Json]
    parent_report: dict[str, Json]


def rescore_run(
    folder: Path, policy: str | None, output: Path, *, render_page: RenderPage
) -> Rescored:
    """Score a finished run again and write the result to a new folder.

    Raises UsageError for a policy or an output that cannot be, ScoringError with every
    reason code for a policy that the evidence does not support, and what a replay
    raises for evidence that cannot be used.
    """
    require_absent(output)
    if folder.resolve() in output.resolve().parents:
        raise _inside(output)
    with open_finished(folder) as run:
        recorded = run.evidence.config.scoring_policy
        named = named_policy(policy, recorded)
        parent_report = read_json_artifact(run.folder.file("eval_report"))
        scope = run.evidence.plan.header.scope
        require_changeable(
            parent_report.get("rescorable"), scope, recorded, named.policy
        )
        evidence = RescoredEvidence(run.evidence, named.policy)
        with new_folder(output) as stage:
            changes = ChangeList(_recorded_rows(run), recorded, named.policy)
            rows = _Rows(changes, stage / _file("eval_task_results"))
            with rows:
                scored = score_run(evidence, rows.take)
            report = _report(evidence, scored, changed=named.policy != recorded)
            identity = _identity(run, named)
            page = render_page(report, identity["record_id"]).encode("utf-8")
            record = {
                **identity,
                "candidate_aggregates": aggregate_hashes(scored),
                "verdict_changes": [each.semantic_payload() for each in changes.found],
                "rescorable": report["rescorable"],
                "artifacts": _artifacts(report, page, rows),
            }
            write_json_artifact(stage / _file("eval_report"), report)
            write_once(stage / _file("report"), [page])
            write_json_artifact(stage / RECORD_FILE, record)
    return Rescored(record, report, parent_report)


class _Rows:
    """Takes the new task rows: to the table, to their hash, to the comparison."""

    def __init__(self, changes: ChangeList, path: Path) -> None:
        self._changes = changes
        self.count = 0
        self._table = TaskTableWriter(path)
        self._digest = hashlib.sha256()
        self._stack = ExitStack()

    def __enter__(self) -> None:
        self._stack.enter_context(self._table)

    def __exit__(self, *failure: object) -> None:
        self._stack.__exit__(*failure)  # type: ignore[arg-type]

    def take(self, row: TaskRow) -> None:
        self._table.append(row)
        self._digest.update(canonical_bytes(row.semantic_payload()) + b"\n")
        self._changes.take(row)
        self.count += 1

    @property
    def content_hash(self) -> str:
        """The hash of the rows as lines of canonical JSON."""
        return "sha256:" + self._digest.hexdigest()


def _recorded_rows(run: OpenRun) -> Iterator[TaskRow]:
    """Yield the parent's rows: its own table, else what its policy gives now."""
    table = run.folder.file("eval_task_results")
    if table.exists():
        yield from read_task_rows(table)
        return
    evidence = run.evidence
    for planned in evidence.plan.header.candidates:
        endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
        for task in evidence.tasks_of(planned):
            for trial in range(evidence.plan.header.trials):
                yield score_recorded(evidence, endpoint, task, trial).row


def _report(
    evidence: RescoredEvidence, scored: Sequence[ScoredCandidate], *, changed: bool
) -> dict[str, Json]:
    config = evidence.config
    header = replace(
        evidence.plan.header,
        scoring_policy=config.scoring_policy,
        scoring_policy_hash=config.scoring_policy_hash,
    )
    report = build_report(header, scored, max_stop_share=config.max_stop_share)
    if not changed:
        return report
    reasons = [*report["non_publication_reasons"], POLICY_CHANGED]
    return {
        **report,
        "publication_allowed": False,
        "non_publication_reasons": reasons,
    }


def _identity(run: OpenRun, named: NamedPolicy) -> dict[str, Json]:
    """Return what fixes the record, with the id that follows from it."""
    evidence = run.evidence
    basis: dict[str, Json] = {
        "schema_version": RECORD_VERSION,
        "kind": "rescore",
        "parent": {
            "eval_run_id": run.manifest["eval_run_id"],
            "manifest_content_hash": run.manifest_hash,
            "evidence": run.manifest["evidence"],
            "evidence_root": run.manifest["merkle_root"],
            "scoring_policy_hash": evidence.config.scoring_policy_hash,
            "candidate_aggregates": run.manifest["candidate_aggregates"],
        },
        "scoring_policy": named.policy.semantic_payload(),
        "scoring_policy_hash": named.policy.identity_hash(),
        "scorer": SCORER,
    }
    digits = content_hash(basis).removeprefix("sha256:")
    return {**basis, "record_id": f"eval-{digits[:12]}", "policy_name": named.name}


def _artifacts(report: Json, page: bytes, rows: _Rows) -> dict[str, Json]:
    """Return what the record holds of its files; a table is bound by its rows."""
    return {
        "eval_report": {
            "file": _file("eval_report"),
            "content_hash": hash_bytes(artifact_bytes(report)),
        },
        "eval_task_results": {
            "file": _file("eval_task_results"),
            "rows": rows.count,
            "rows_hash": rows.content_hash,
        },
        "report": {"file": _file("report"), "content_hash": hash_bytes(page)},
    }


def _file(name: str) -> str:
    return ARTIFACT_FILES[name]


def _inside(output: Path) -> UsageError:
    return UsageError(
        "eval_cli_invalid",
        "a run's folder is never written to",
        where=f"--output {output}",
        expected="a place outside the run's folder",
        recovery="name a folder beside it",
    )
