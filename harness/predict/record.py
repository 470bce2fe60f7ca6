"""The evaluation record of a predict run, assembled from what its folder holds.

Nothing is computed twice and nothing is measured here: metrics are the contract's own,
conditions and decoding as applied come from the log, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness.canonical import Json, hash_file
from harness.errors import FairtrialError
from harness.evaluations.conditions import ConditionCounts
from harness.evaluations.contracts import (
    answer_metrics,
    contract_fields,
    metric_fields,
    scorer_versions,
)
from harness.evaluations.of_files import SINGLE_TURN
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
from harness.evaluations.rows import RowsDigest
from harness.evaluations.stored import uses_before
from harness.evidence.generation_log import RecordedRow
from harness.predict.folder import (
    DECLARATION_FILE,
    MANIFEST_FILE,
    SCORES_FOLDER,
    PredictFolder,
)
from harness.predict.outputs import SubjectResult, requested
from harness.predict.plan import TASKS, PredictPlan, Subject
from harness.predict.registry import model_of
from harness.predictions.action_ir import SAMPLE_SCORES
from harness.predictions.prompting import Prompt
from harness.predictions.questions import read_questions

EMBEDDING_BASELINE: Final = (
    "the answer is what stands nearest to the row's input by the cosine of embeddings: "
    "a label of classification, else the gold of a training row; of equals the first"
)


def completed_record(
    plan: PredictPlan,
    folder: PredictFolder,
    results: Sequence[SubjectResult],
    *,
    uses: int | None = None,
) -> dict[str, Json]:
    """Return the record of a completed evaluation.

    `uses` replaces the count of a holdout's uses, for a record that is made again.
    """
    subjects = [_subject(plan, result) for result in results]
    return build_record(_inputs(plan, folder, subjects, None, uses))


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
    uses: int | None,
) -> RecordInputs:
    artifacts, rows = folder.hashes(), _rows(plan, folder)
    return RecordInputs(
        kind="predict",
        task=TASKS[plan.contract],
        protocol=_protocol(plan, folder, rows),
        scorer=scorer_versions(plan.contract),
        subjects=subjects,
        artifacts=artifacts,
        metric=plan.metric,
        obstacles=()
        if error is None
        else (Obstacle("rows_incomplete", "the evaluation was not completed"),),
        parent=_parent(plan),
        identity={"artifacts": artifacts, "predict_config_hash": plan.config_hash},
        holdout=_holdout(plan, folder, rows, uses),
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
        protocol=_own_protocol(plan, subject),
    )


def _own_protocol(plan: PredictPlan, subject: Subject) -> dict[str, Mapping[str, Json]]:
    """Return what a comparator was asked with that is not the candidate's."""
    if subject.prompt is None:
        return {"prompts": {"shown": "nothing but embeddings"}, "decoding": {}}
    if subject.prompt == plan.prompt:
        return {}
    return {"prompts": _prompts(subject.prompt)}


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


def _protocol(plan: PredictPlan, folder: PredictFolder, rows: RowsDigest) -> Protocol:
    declaration = folder.file(DECLARATION_FILE)
    return Protocol(
        rows=rows.as_fields(),
        prompts=_prompts(plan.prompt),
        decoding=requested(plan),
        metric=metric_fields(plan.contract, plan.metric),
        contract=contract_fields(
            plan.contract, None if plan.declaration is None else hash_file(declaration)
        ),
        scope=SINGLE_TURN,
    )


def _prompts(prompt: Prompt) -> dict[str, Json]:
    texts = prompt.as_record()
    return {
        f"{name}_sha256": None if texts[name] is None else texts[name]["sha256"]
        for name in ("system_message", "user")
    }


def _rows(plan: PredictPlan, folder: PredictFolder) -> RowsDigest:
    digest = RowsDigest(inputs=True)
    for row in read_questions(folder.file(MANIFEST_FILE), plan.contract):
        digest.add(row.id, row.gold, row.input)
    return digest


def _parent(plan: PredictPlan) -> Parent | None:
    stated = plan.meaning.get("parent")
    if stated is None:
        return None
    facts = {"predict_config_hash": stated["predict_config_hash"]}
    return Parent(stated["record_id"], stated["record_hash"], facts)


def _holdout(
    plan: PredictPlan, folder: PredictFolder, rows: RowsDigest, uses: int | None
) -> Holdout | None:
    if not plan.evaluation.holdout:
        return None
    if uses is None:
        uses = uses_before(folder.path, rows.sha256)
    return Holdout(rows.sha256, uses)
