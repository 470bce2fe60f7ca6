"""One predict run, from a plan to a folder with its evaluation record.

Refusals, evidence, arithmetic, record: in that order and each once. A finished folder
is worked out again from its evidence instead, without a socket or an engine. Whatever
stops a run leaves a folder that can be resumed, and unless the machine or its user
stopped it, a record that says the evaluation failed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from harness.canonical import Json
from harness.errors import (
    ArtifactError,
    EvidenceError,
    FairtrialError,
    Violation,
)
from harness.evidence.artifacts import artifact_bytes, read_json_artifact
from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.generation_log import GENERATION_LOG, GenerationLog
from harness.predict.collect import Watch, build_parties, collect_all
from harness.predict.exchanges import Exchanges, require_none, unbacked_rows
from harness.predict.folder import (
    CONFIG_FILE,
    DECLARATION_FILE,
    MANIFEST_FILE,
    PROMPT_FILE,
    PredictFolder,
    PredictState,
)
from harness.predict.outputs import SubjectResult, write_outputs
from harness.predict.plan import PredictPlan
from harness.predict.record import completed_record, failed_record, write_evaluation
from harness.predict.registry import key_of
from harness.predictions.prompting import PROMPT_VERSION
from harness.predictions.questions import ACTION_IR, Question, read_questions
from harness.regular_file import read_regular_file
from harness.scoring.action_ir.mobile import MobileScorer

CONFIG_VERSION = "1"


@dataclass(frozen=True, slots=True)
class FinishedPredict:
    """A run that has its record."""

    record: dict[str, Json]
    replayed: bool


def predict(
    plan: PredictPlan, folder: PredictFolder, *, resume: bool, watch: Watch
) -> FinishedPredict:
    """Run, resume or work out again; raise the FairtrialError that stops the run."""
    state = folder.enter(plan.config_hash, resume=resume)
    if state is PredictState.FINISHED:
        return _again(plan, folder)
    questions = _preflight(plan)
    folder.create()
    with folder.lock(started_at=datetime.now(UTC).isoformat()):
        # Another process may have finished the folder before the lock was had.
        state = folder.enter(plan.config_hash, resume=resume)
        if state is PredictState.FINISHED:
            return _again(plan, folder)
        if state is PredictState.FAILED:
            folder.put_failed_record_aside()
        _freeze(plan, folder)
        folder.clear_unfinished_scores()
        try:
            results = _collect_and_write(plan, folder, questions, watch)
            record = completed_record(plan, folder, results)
        except FairtrialError as error:
            # Where the machine refuses to write, it refuses this too.
            with suppress(EvidenceError):
                write_evaluation(folder, failed_record(plan, folder, error))
            raise
        write_evaluation(folder, record)
    return FinishedPredict(record, replayed=False)


def _preflight(plan: PredictPlan) -> list[Question]:
    """Read every row and key before anything is made; raise what would stop a run."""
    questions = read_questions(plan.manifest, plan.contract)
    for subject in plan.subjects:
        key_of(subject.engine, subject.section)
        if subject.train is not None:
            read_questions(subject.train, plan.contract)
    if plan.contract == ACTION_IR:
        _require_scorable(questions, plan)
    return questions


def _require_scorable(questions: Sequence[Question], plan: PredictPlan) -> None:
    """Score the manifest without predictions: gold that cannot be scored shows now."""
    from harness.predictions.json_lines import read_rows

    unanswered = ({"id": row.id, "prediction_raw": None} for row in questions)
    for _ in MobileScorer(unanswered).scores(read_rows(plan.manifest)):
        pass


def _freeze(plan: PredictPlan, folder: PredictFolder) -> None:
    """Copy what is asked into the folder, and say whose it is."""
    manifest = plan.meaning["manifest"]
    folder.write(
        CONFIG_FILE,
        {
            "schema_version": CONFIG_VERSION,
            "predict_config_hash": plan.config_hash,
            "semantic_payload": dict(plan.meaning),
        },
    )
    folder.keep(MANIFEST_FILE, plan.manifest, manifest["content_hash"])
    if plan.declaration is not None:
        folder.keep(DECLARATION_FILE, plan.declaration, manifest["declaration"])
    for subject in plan.subjects:
        if subject.train is not None:
            folder.keep(folder.train(subject.name).name, subject.train)
    folder.write(
        PROMPT_FILE,
        {
            "version": PROMPT_VERSION,
            "subjects": {
                subject.name: subject.prompt.as_record()
                for subject in plan.subjects
                if subject.prompt is not None
            },
        },
    )


def _collect_and_write(
    plan: PredictPlan,
    folder: PredictFolder,
    questions: Sequence[Question],
    watch: Watch,
) -> list[SubjectResult]:
    with (
        CandidateLog.open(
            folder.file(CANDIDATE_LOG.file_name), writable=True
        ) as requests,
        GenerationLog.open(
            folder.file(GENERATION_LOG.file_name), writable=True
        ) as generations,
    ):
        exchanges = Exchanges(plan, folder, (requests, generations))
        if folder.predictions(plan.subjects[0].name).exists():
            # Predictions that stand are never changed, so nothing is asked after them.
            require_none(list(exchanges.unbacked(questions)))
        else:
            exchanges.open_again(questions)
            parties = build_parties(plan, folder, requests)
            anyio.run(
                collect_all,
                plan,
                folder,
                questions,
                parties,
                (requests, generations),
                watch,
            )
            # What follows from the logs must not outlive them.
            requests.sync()
            generations.sync()
        return write_outputs(plan, folder, generations, questions)


def _again(plan: PredictPlan, folder: PredictFolder) -> FinishedPredict:
    again = work_out_again(plan, folder)
    if again.differences:
        raise ArtifactError.from_violations(again.differences)
    return FinishedPredict(again.record, replayed=True)


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """What follows from a folder's evidence, and where the folder says otherwise."""

    record: dict[str, Json]
    differences: tuple[Violation, ...]


def work_out_again(plan: PredictPlan, folder: PredictFolder) -> WorkedOut:
    """Work a finished folder out again beside it; nothing is sent or written in it."""
    questions = read_questions(folder.file(MANIFEST_FILE), plan.contract)
    log = folder.file(GENERATION_LOG.file_name)
    with (
        GenerationLog.open(log, writable=False) as generations,
        tempfile.TemporaryDirectory(prefix="fairtrial-") as scratch,
    ):
        target = PredictFolder(Path(scratch))
        results = write_outputs(plan, folder, generations, questions, target)
        own, found = folder.hashes(), target.hashes()
    stored = read_json_artifact(folder.record)
    # How often a holdout had been used is a fact of that day.
    uses = (stored.get("holdout") or {}).get("uses_before")
    record = completed_record(plan, folder, results, uses=uses)
    differences = [
        _difference(name, content_hash, own.get(name, "no such file"))
        for name, content_hash in found.items()
        if own.get(name) != content_hash
    ]
    if record != stored:
        members = sorted(
            name for name in {*record, *stored} if record.get(name) != stored.get(name)
        )
        differences += _changed_artifacts(record, stored)
        words = f"other values of {', '.join(members)}"
        differences.append(_difference(folder.record.name, "the record", words))
    elif read_regular_file(folder.record) != artifact_bytes(record):
        # Evaluations that are made of a record name it by the hash of its file.
        words = "its values in other bytes"
        differences.append(_difference(folder.record.name, "the record", words))
    # Only logs that are those of the record are asked to agree with each other.
    found_apart = differences or unbacked_rows(plan, folder, questions)
    return WorkedOut(record, tuple(dict.fromkeys(found_apart)))


def _changed_artifacts(
    record: Mapping[str, Json], stored: Mapping[str, Json]
) -> list[Violation]:
    """Name each file that is not, or no longer, the one that the record binds."""
    bound, found = stored.get("artifacts"), record["artifacts"]
    if not isinstance(bound, dict) or not isinstance(found, dict):
        return []
    return [
        _difference(name, str(bound.get(name)), str(found.get(name, "no such file")))
        for name in sorted({*bound, *found})
        if bound.get(name) != found.get(name)
    ]


def _difference(name: str, expected: str, actual: str) -> Violation:
    return Violation(
        "eval_artifact_invalid",
        name,
        "the folder is not what follows from the evidence in it",
        expected,
        actual,
        "bring back an intact copy of the folder",
    )
