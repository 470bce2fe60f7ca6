"""`rescore`: a recorded run scored again, as of now or under another declared policy.

The run's folder is only read. What comes out is a folder of its own: a report, a task
table, a page and `eval_record.json`, which names the parent run by its manifest and
its evidence by its root, and lists every verdict that changed. The run itself stands
in it under `parent/`, linked where that is possible, so that whoever holds the folder
can score the evidence again: the same evidence and policy give the same record. The
bytes of the table depend on the version of pyarrow, so they are bound in a file of
their own. No clock is read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.candidates.request import Endpoint
from harness.canonical import (
    Json,
    content_hash,
    hash_bytes,
    hash_file,
)
from harness.errors import ArtifactError
from harness.evaluations.record import (
    ORIGINAL,
    RECORD_FILE,
    Parent,
    RecordInputs,
    build_record,
    later_id,
)
from harness.evidence.artifacts import (
    artifact_bytes,
    read_json_artifact,
    write_json_artifact,
    write_once,
)
from harness.evidence.disk import machine_refusals, sync_file, sync_folder
from harness.evidence.folder import (
    ARTIFACT_FILES,
    PARENT_FOLDER,
    RESCORED_FILE,
    require_outside,
)
from harness.evidence.manifest import MANIFEST_FILE
from harness.evidence.plan_file import PlanHeader
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import (
    Stretch,
    TaskTableWriter,
    in_stretches,
    read_stretches,
)
from harness.predictions.output_folder import new_folder, require_absent
from harness.run.finished import OpenRun, open_finished
from harness.run.policies import NamedPolicy, named_policy
from harness.run.record import record_inputs, scorer_of
from harness.run.report import aggregate_hashes, build_report
from harness.run.rescored_evidence import RescoredEvidence, require_changeable
from harness.run.score import (
    ScoredCandidate,
    TakeRow,
    readable,
    score_recorded,
    score_run,
)
from harness.run.verdict_change import ChangeList
from harness.scoring.failures import ERROR_TAXONOMY_HASH

FILES_VERSION: Final = "1.0"
IDENTITY_VERSION: Final = "1.0"
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
    scored: tuple[ScoredCandidate, ...]
    page: bytes


def rescore_run(
    folder: Path, policy: str | None, output: Path, *, render_page: RenderPage
) -> Rescored:
    """Score a finished run again and write the result to a new folder.

    Raises UsageError for a policy or an output that cannot be, ScoringError with every
    reason code for a policy that the evidence does not support, and what a replay
    raises for evidence that cannot be used.
    """
    require_absent(output)
    require_outside(folder, output)
    with open_finished(folder) as run:
        named = named_policy(policy, run.evidence.config.scoring_policy)
        with new_folder(output) as stage:
            with TaskTableWriter(stage / _file("eval_task_results")) as table:
                rescored = score_again(
                    run,
                    named,
                    table.append,
                    lambda report, record_id: render_page(report, record_id).encode(),
                )
            write_json_artifact(stage / _file("eval_report"), rescored.report)
            write_once(stage / _file("report"), [rescored.page])
            write_json_artifact(stage / RECORD_FILE, rescored.record)
            carry_run(run, stage)
            write_json_artifact(stage / RESCORED_FILE, bound_files(stage))
    return rescored


def score_again(
    run: OpenRun,
    named: NamedPolicy,
    take_row: TakeRow,
    render_page: Callable[[Mapping[str, Json], str], bytes],
    *,
    taxonomy_hash: str = ERROR_TAXONOMY_HASH,
) -> Rescored:
    """Score a run under a policy; `take_row` gets the new rows in order.

    `taxonomy_hash` is the cause table that the record cites. Raises ScoringError for
    a policy that the evidence does not support.
    """
    recorded = run.evidence.config.scoring_policy
    parent_report = _parent_report(run)
    scope = run.evidence.plan.header.scope
    with readable(_file("eval_report")):
        stated = parent_report.get("rescorable")
        require_changeable(stated, scope, recorded, named.policy)
    evidence = RescoredEvidence(run.evidence, named.policy)
    changes = ChangeList(_recorded_rows(run), recorded, named.policy)
    rows = _Rows(changes, take_row)
    scored = score_run(evidence, rows.take)
    found = changes.end()
    report = _report(evidence, scored, taxonomy_hash, changed=named.policy != recorded)
    record_id = later_id(_identity(run, named, report))
    page = render_page(report, record_id)
    record = build_record(
        replace(
            _inputs(run, evidence, report, page),
            kind="rescore",
            parent=_parent(run),
            identity=_identity(run, named, report),
            details={
                **_episodes(report, scored),
                "policy_name": named.name,
                "scoring_policy": named.policy.semantic_payload(),
                "scoring_policy_hash": named.policy.identity_hash(),
                "task_rows": rows.as_payload(),
                "verdict_changes": [each.semantic_payload() for each in found],
            },
        )
    )
    return Rescored(record, report, parent_report, scored, page)


def _parent_report(run: OpenRun) -> dict[str, Json]:
    """Return the run's own report; raise ArtifactError for one that was changed."""
    path = run.folder.file("eval_report")
    artifact = run.manifest["artifacts"].get("eval_report")
    stated = artifact.get("content_hash") if isinstance(artifact, dict) else None
    report: Json = None
    actual = "no such file"
    if path.is_file():
        actual, report = hash_file(path), read_json_artifact(path)
    if stated != actual or not isinstance(report, dict):
        raise ArtifactError(
            "eval_artifact_invalid",
            "the run's report is not the one that it wrote",
            where=path.name,
            expected=str(stated),
            actual=actual,
            recovery="`fairtrial verify RUN` names what was changed; bring it back",
        )
    return report


def carry_run(run: OpenRun, stage: Path) -> None:
    """Put the run that a record rests on beside it, file by file.

    A file is linked where the file system can, so that it takes no space, and copied
    where it cannot. Raises EvidenceError when the machine refuses.
    """
    target = stage / PARENT_FOLDER
    target.mkdir(mode=0o700)
    for file in (*ARTIFACT_FILES.values(), MANIFEST_FILE):
        source = run.folder.path / file
        if not source.exists():
            continue
        with machine_refusals("carry a run's file", source):
            try:
                # A link to a link would lead nowhere from here.
                os.link(source.resolve(), target / file)
            except OSError:
                shutil.copy2(source, target / file)
                sync_file(target / file)
    sync_folder(target)


def bound_files(folder: Path) -> dict[str, Json]:
    """Return what binds a rescoring's own files byte by byte, the run's apart."""
    names = (
        RECORD_FILE,
        _file("eval_report"),
        _file("eval_task_results"),
        _file("report"),
    )
    payload: dict[str, Json] = {
        "schema_version": FILES_VERSION,
        "files": {name: hash_file(folder / name) for name in names},
    }
    return {**payload, "own_hash": content_hash(payload)}


class _Rows:
    """Takes the new task rows: to whoever wants them, a hash and the comparison."""

    def __init__(self, changes: ChangeList, take_row: TakeRow) -> None:
        self._changes = changes
        self.count = 0
        self._take_row = take_row
        self._digest = hashlib.sha256()

    def take(self, row: TaskRow) -> None:
        self._take_row(row)
        self._digest.update(row.semantic_bytes() + b"\n")
        self._changes.take(row)
        self.count += 1

    def as_payload(self) -> dict[str, Json]:
        """Return what binds the rows: their number, and a hash over their lines."""
        return {
            "file": _file("eval_task_results"),
            "rows": self.count,
            "rows_hash": "sha256:" + self._digest.hexdigest(),
        }


def _recorded_rows(run: OpenRun) -> Iterator[Stretch]:
    """Return the parent's rows: its own table, else what its policy gives now."""
    table = run.folder.file("eval_task_results")
    return read_stretches(table) if table.exists() else in_stretches(_rows_now(run))


def _rows_now(run: OpenRun) -> Iterator[TaskRow]:
    evidence = run.evidence
    for planned in evidence.plan.header.candidates:
        endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
        for task in evidence.tasks_of(planned):
            for trial in range(evidence.plan.header.trials):
                yield score_recorded(evidence, endpoint, task, trial).row


def _report(
    evidence: RescoredEvidence,
    scored: Sequence[ScoredCandidate],
    taxonomy_hash: str,
    *,
    changed: bool,
) -> dict[str, Json]:
    report = build_report(
        _header(evidence),
        scored,
        max_stop_share=evidence.config.max_stop_share,
        taxonomy_hash=taxonomy_hash,
    )
    if not changed:
        return report
    reasons = [*report["non_publication_reasons"], POLICY_CHANGED]
    return {
        **report,
        "publication_allowed": False,
        "non_publication_reasons": reasons,
    }


def _header(evidence: RescoredEvidence) -> PlanHeader:
    """Return the plan's header as the new policy reads it."""
    config = evidence.config
    return replace(
        evidence.plan.header,
        scoring_policy=config.scoring_policy,
        scoring_policy_hash=config.scoring_policy_hash,
    )


def _inputs(
    run: OpenRun, evidence: RescoredEvidence, report: Mapping[str, Json], page: bytes
) -> RecordInputs:
    """Return what a record of the run has too, for the new report."""
    resolved = read_json_artifact(run.folder.file("resolved_eval_config"))
    files = {
        _file("eval_report"): hash_bytes(artifact_bytes(report)),
        _file("report"): hash_bytes(page),
    }
    return record_inputs(
        _header(evidence),
        resolved["semantic_payload"],
        report,
        files,
        _file("eval_task_results"),
    )


def _episodes(
    report: Mapping[str, Json], scored: Sequence[ScoredCandidate]
) -> dict[str, Json]:
    return {
        "candidate_aggregates": aggregate_hashes(scored),
        "eval_run_id": report["eval_run_id"],
        "non_publication_reasons": report["non_publication_reasons"],
        "policy_changes": report["rescorable"],
        "publication_allowed": report["publication_allowed"],
    }


def _parent(run: OpenRun) -> Parent:
    path = run.folder.file("eval_record")
    with machine_refusals("read an artifact", path):
        record_hash = hash_file(path) if path.exists() else None
    return Parent(ORIGINAL, record_hash, _parent_facts(run))


def _parent_facts(run: OpenRun) -> dict[str, Json]:
    return {
        "eval_run_id": run.manifest["eval_run_id"],
        "manifest_content_hash": run.manifest_hash,
        "evidence": run.manifest["evidence"],
        "evidence_root": run.manifest["merkle_root"],
        "scoring_policy_hash": run.evidence.config.scoring_policy_hash,
        "candidate_aggregates": run.manifest["candidate_aggregates"],
    }


def _identity(
    run: OpenRun, named: NamedPolicy, report: Mapping[str, Json]
) -> dict[str, Json]:
    """Return what fixes the id: evidence, policy and scorer."""
    return {
        "schema_version": IDENTITY_VERSION,
        "kind": "rescore",
        "parent": _parent_facts(run),
        "scoring_policy": named.policy.semantic_payload(),
        "scoring_policy_hash": named.policy.identity_hash(),
        "scorer": scorer_of(report),
    }


def _file(name: str) -> str:
    return ARTIFACT_FILES[name]
