"""The evaluation record of a predict run, assembled from what its folder holds.

Nothing is computed twice and nothing is measured here: metrics are the contract's own,
conditions and decoding as applied come from the log, row by row. Hashes of rows are
taken over ids, inputs and golds in manifest order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.canonical import Json, content_hash, hash_file
from harness.errors import ArtifactError, EvidenceError, FairtrialError
from harness.evaluations.conditions import ConditionCounts
from harness.evaluations.contracts import answer_metrics, scorer_versions
from harness.evaluations.protocol import Protocol
from harness.evaluations.record import (
    Holdout,
    Parent,
    RecordInputs,
    build_record,
    write_record,
)
from harness.evaluations.record import Subject as RecordSubject
from harness.evaluations.rescoring import Obstacle
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.generation_log import RecordedRow
from harness.predict.folder import (
    DECLARATION_FILE,
    MANIFEST_FILE,
    RECORD_FILE,
    SCORES_FOLDER,
    PredictFolder,
)
from harness.predict.outputs import SubjectResult, requested
from harness.predict.plan import TASKS, PredictPlan
from harness.predict.registry import model_of
from harness.predictions.action_ir import SAMPLE_SCORES
from harness.predictions.digests import file_sha256
from harness.predictions.questions import Question, read_questions

EMBEDDING_BASELINE: Final = (
    "the answer is what stands nearest to the row's input by the cosine of embeddings: "
    "a label of classification, else the gold of a training row; of equals the first"
)


def completed_record(
    plan: PredictPlan,
    folder: PredictFolder,
    results: Sequence[SubjectResult],
    *,
    uses_before: int | None = None,
) -> dict[str, Json]:
    """Return the record of a completed evaluation.

    `uses_before` replaces the count of a holdout's uses, for a record made again.
    """
    subjects = [_subject(plan, result) for result in results]
    return build_record(_inputs(plan, folder, subjects, None, uses_before))


def failed_record(
    plan: PredictPlan, folder: PredictFolder, error: FairtrialError
) -> dict[str, Json]:
    """Return the record of an evaluation that an error ended; it has no scores."""
    return build_record(_inputs(plan, folder, [], error, None))


def write_evaluation(folder: PredictFolder, record: dict[str, Json]) -> None:
    """Write the record, after everything that it names."""
    write_record(folder.path, record)


def _inputs(
    plan: PredictPlan,
    folder: PredictFolder,
    subjects: Sequence[RecordSubject],
    error: FairtrialError | None,
    uses_before: int | None,
) -> RecordInputs:
    artifacts = folder.hashes()
    return RecordInputs(
        kind="predict",
        task=TASKS[plan.contract],
        protocol=_protocol(plan, folder),
        scorer=scorer_versions(plan.contract),
        subjects=subjects,
        artifacts=artifacts,
        metric=plan.metric,
        obstacles=()
        if error is None
        else (Obstacle("rows_incomplete", "the evaluation was not completed"),),
        parent=_parent(plan),
        identity={"artifacts": artifacts, "predict_config_hash": plan.config_hash},
        holdout=_holdout(plan, folder, uses_before),
        failure=error,
        details={"predict_config_hash": plan.config_hash},
    )


def _subject(plan: PredictPlan, result: SubjectResult) -> RecordSubject:
    subject = result.subject
    found = answer_metrics(plan.contract, result.aggregate)
    model = model_of(subject.section)
    if subject.embeds:
        model["baseline"] = EMBEDDING_BASELINE
    return RecordSubject(
        name=subject.name,
        role="candidate" if subject.index == 0 else "comparator",
        model=model,
        metrics=found["metrics"],
        conditions=_conditions(result.rows),
        requested=None if subject.embeds else requested(plan),
        applied=None if subject.embeds else result.applied,
        measurements=result.measurements,
        counts={**found["counts"], **_counts(result)},
        samples=f"{SCORES_FOLDER}/{subject.name}/{SAMPLE_SCORES}",
    )


def _conditions(rows: Sequence[RecordedRow]) -> dict[str, Json]:
    """Return what answers were given under; a stop was answered by nobody."""
    counts = ConditionCounts()
    for row in rows:
        if not row.stopped:
            counts.add(row.conditions)
    return counts.result()


def _counts(result: SubjectResult) -> dict[str, Json]:
    failures: dict[str, int] = {}
    for row in result.rows:
        if row.failure is not None:
            failures[row.failure] = failures.get(row.failure, 0) + 1
    return {
        "generation_failures": dict(sorted(failures.items())),
        "stops": result.stops,
    }


def _protocol(plan: PredictPlan, folder: PredictFolder) -> Protocol:
    questions = read_questions(folder.file(MANIFEST_FILE), plan.contract)
    prompt = plan.prompt.as_record()
    declaration = folder.file(DECLARATION_FILE)
    return Protocol(
        rows={
            "count": len(questions),
            "gold": _over(questions, lambda row: row.gold),
            "ids": _over(questions, lambda row: row.id),
            "inputs": _over(questions, lambda row: row.input),
        },
        prompts={
            name: None if prompt[name] is None else prompt[name]["sha256"]
            for name in ("system_message", "user")
        },
        decoding=requested(plan),
        metric={
            "name": plan.metric,
            "version": scorer_versions(plan.contract)["metric_version"],
        },
        contract={
            **scorer_versions(plan.contract),
            "declaration_sha256": file_sha256(declaration)
            if plan.declaration is not None
            else None,
        },
        plan={"max_stop_share": plan.evaluation.max_stop_share},
        scope={"kind": "predict"},
    )


def _over(questions: Sequence[Question], member: Callable[[Question], Json]) -> str:
    return content_hash([member(question) for question in questions])


def _parent(plan: PredictPlan) -> Parent | None:
    if plan.parent is None:
        return None
    folder = PredictFolder(plan.parent)
    record = read_json_artifact(folder.record)
    return Parent(
        record_id=record["record_id"],
        record_hash=hash_file(folder.record),
        facts={"predict_config_hash": record["predict_config_hash"]},
    )


def _holdout(
    plan: PredictPlan, folder: PredictFolder, uses_before: int | None
) -> Holdout | None:
    if not plan.evaluation.holdout:
        return None
    rows = file_sha256(folder.file(MANIFEST_FILE))
    if uses_before is None:
        uses_before = _uses_beside(folder, rows)
    return Holdout(rows, uses_before)


def _uses_beside(folder: PredictFolder, rows_sha256: str) -> int:
    """Count completed evaluations in folders beside this one that used the rows."""
    own = folder.path.resolve()
    uses = 0
    for record in sorted(own.parent.glob(f"*/{RECORD_FILE}")):
        if record.parent.resolve() == own:
            continue
        try:
            stated = read_json_artifact(record)
        except (ArtifactError, EvidenceError):
            # A neighbour that cannot be read is no reason to refuse this evaluation.
            continue
        holdout = stated.get("holdout") if isinstance(stated, Mapping) else None
        completed = isinstance(stated, Mapping) and stated.get("status") == "completed"
        if completed and isinstance(holdout, Mapping):
            uses += holdout.get("rows_sha256") == rows_sha256
    return uses
