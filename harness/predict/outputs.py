"""From the log of generations to predictions, receipts and scores.

Everything here follows from the log and the frozen files, so doing it again gives the
same bytes: a killed run writes the rest, a finished folder is compared with what comes
out. Predictions stand in manifest order, whatever order the answers came in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.canonical import Json, json_equal
from harness.config.predict_document import TorchLocalSection
from harness.engines.chat_readback import SETTINGS
from harness.errors import ArtifactError, EvidenceError
from harness.evidence.artifacts import artifact_bytes, write_once
from harness.evidence.generation_log import GenerationRecords, RecordedRow
from harness.predict.folder import DECLARATION_FILE, MANIFEST_FILE, PredictFolder
from harness.predict.plan import PredictPlan, Subject
from harness.predict.registry import model_of
from harness.predictions.action_ir import AGGREGATE, SAMPLE_SCORES, score_files
from harness.predictions.answers import score_classification, score_json_records
from harness.predictions.digests import file_sha256
from harness.predictions.generation import PredictionLine
from harness.predictions.json_lines import line_bytes
from harness.predictions.questions import ACTION_IR, JSON_RECORDS, Question
from harness.predictions.receipts import (
    EngineReceipt,
    GenerationReceipt,
    Receipt,
    receipt_path,
)
from harness.regular_file import read_regular_file
from harness.scoring.answers import TRUNCATED


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """What one subject came to."""

    subject: Subject
    rows: tuple[RecordedRow, ...]
    """In manifest order."""
    aggregate: dict[str, Json]
    """The contract's."""
    measurements: list[dict[str, Json]]

    @property
    def stops(self) -> int:
        """Rows without an answer for a reason that is not the model's."""
        return sum(row.stopped for row in self.rows)

    @property
    def applied(self) -> dict[str, Json]:
        """Every setting as applied on all rows, or `{"mixed": [...]}`."""
        return applied_over(self.rows)


def rows_of(
    records: GenerationRecords, subject: Subject, questions: Sequence[Question]
) -> tuple[RecordedRow, ...]:
    """Return what every row came to, in manifest order.

    Raises EvidenceError where the log does not have a row.
    """
    found = []
    for question in questions:
        row = records.row(subject.name, question.id)
        if row is None:
            raise EvidenceError(
                "eval_evidence_invalid",
                "the log does not say what a row came to",
                where=f"generation_log.jsonl, subject {subject.name}, {question.id}",
                expected="one record for each row of the manifest",
                recovery="bring back an intact copy of the folder",
            )
        found.append(row)
    return tuple(found)


def write_outputs(
    plan: PredictPlan,
    folder: PredictFolder,
    records: GenerationRecords,
    questions: Sequence[Question],
    target: PredictFolder | None = None,
) -> list[SubjectResult]:
    """Write predictions, receipt and scores of every subject; again is no change.

    They go into `target`, None for the run's own folder. Raises ArtifactError where a
    file is there and holds something else.
    """
    target = folder if target is None else target
    results = []
    for subject in plan.subjects:
        rows = rows_of(records, subject, questions)
        predictions = target.predictions(subject.name)
        write_once(predictions, _lines(plan.contract, rows, questions))
        receipt = _receipt(plan, subject, rows, records, folder, predictions)
        write_once(receipt_path(predictions), [artifact_bytes(receipt.as_json())])
        output = target.scores(subject.name)
        aggregate = _score(plan, folder, predictions, output)
        results.append(
            SubjectResult(
                subject, rows, aggregate, records.measurements(subject.name) or []
            )
        )
    return results


def _lines(
    contract: str, rows: Sequence[RecordedRow], questions: Sequence[Question]
) -> Iterator[bytes]:
    for row, question in zip(rows, questions, strict=True):
        if contract == ACTION_IR:
            yield line_bytes(_action_ir_line(row).as_record())
        else:
            yield line_bytes(
                {
                    "failure": row.failure,
                    "finish_reason": row.finish_reason,
                    "generated_tokens": row.generated_tokens,
                    "gold": question.gold,
                    "id": row.row_id,
                    "prompt_tokens": row.prompt_tokens,
                    "raw": row.text,
                }
            )


def _action_ir_line(row: RecordedRow) -> PredictionLine:
    failed = row.failure is not None
    return PredictionLine(
        id=row.row_id,
        prediction_raw=row.text,
        prompt_tokens=row.prompt_tokens,
        generated_tokens=0 if failed else row.generated_tokens,
        truncated=row.finish_reason == TRUNCATED,
        generation_failure=row.failure,
    )


def _receipt(
    plan: PredictPlan,
    subject: Subject,
    rows: Sequence[RecordedRow],
    records: GenerationRecords,
    folder: PredictFolder,
    predictions: Path,
) -> Receipt:
    manifest_sha256 = file_sha256(folder.file(MANIFEST_FILE))
    predictions_sha256 = file_sha256(predictions)
    generated = sum(row.text is not None for row in rows)
    truncated = sum(row.finish_reason == TRUNCATED for row in rows)
    section, sessions = subject.section, records.sessions(subject.name)
    if isinstance(section, TorchLocalSection) and not subject.embeds and sessions:
        return GenerationReceipt(
            checkpoint_dir=sessions[-1]["checkpoint_dir"],
            checkpoint_sha256=sessions[-1]["checkpoint_sha256"],
            manifest=MANIFEST_FILE,
            manifest_sha256=manifest_sha256,
            predictions=predictions.name,
            predictions_sha256=predictions_sha256,
            device=section.device,
            dtype=section.dtype,
            batch_size=section.batch_size,
            max_new_tokens=plan.decoding.max_tokens,
            examples=len(rows),
            generated=generated,
            truncated=truncated,
            failed=len(rows) - generated,
            elapsed_seconds=elapsed_s(rows),
        )
    return EngineReceipt(
        engine=section.kind,
        model=model_of(section),
        decoding_requested={} if subject.embeds else requested(plan),
        decoding_applied=applied_over(rows),
        manifest=MANIFEST_FILE,
        manifest_sha256=manifest_sha256,
        predictions=predictions.name,
        predictions_sha256=predictions_sha256,
        examples=len(rows),
        generated=generated,
        truncated=truncated,
        failed=len(rows) - generated,
        stopped=sum(row.stopped for row in rows),
        elapsed_seconds=elapsed_s(rows),
    )


def requested(plan: PredictPlan) -> dict[str, Json]:
    """Return the decoding as it was asked for."""
    found: dict[str, Json] = plan.decoding.model_dump(mode="json")
    return found


def elapsed_s(rows: Sequence[RecordedRow]) -> float:
    """Return the seconds that processes spent until the last row that each took."""
    longest: dict[int, float] = {}
    for row in rows:
        longest[row.session] = max(longest.get(row.session, 0.0), row.since_start_s)
    return sum(longest.values())


def applied_over(rows: Sequence[RecordedRow]) -> dict[str, Json]:
    """Return each setting as all answered rows state it, or all of its values."""
    found: dict[str, Json] = {}
    answered = [row.applied for row in rows if row.applied and not row.stopped]
    for setting in SETTINGS if answered else ():
        values = _distinct([applied.get(setting, "unknown") for applied in answered])
        found[setting] = values[0] if len(values) == 1 else {"mixed": values}
    return found


def _distinct(values: Sequence[Json]) -> list[Json]:
    found: list[Json] = []
    for value in values:
        if not any(json_equal(value, known) for known in found):
            found.append(value)
    return found


def _score(
    plan: PredictPlan, folder: PredictFolder, predictions: Path, output: Path
) -> dict[str, Json]:
    """Score into the subject's folder; a folder that is there has to be equal."""
    if not output.exists():
        return score_into(plan, folder, predictions, output)
    with tempfile.TemporaryDirectory(prefix="fairtrial-") as scratch:
        again = Path(scratch) / "scores"
        aggregate = score_into(plan, folder, predictions, again)
        for name in (SAMPLE_SCORES, AGGREGATE):
            if read_regular_file(again / name) != read_regular_file(output / name):
                raise ArtifactError(
                    "eval_artifact_invalid",
                    "scores do not follow from the predictions beside them",
                    where=f"{output.parent.name}/{output.name}/{name}",
                    expected="the bytes that scoring gives again",
                    recovery="bring back an intact copy of the folder",
                )
    return aggregate


def score_into(
    plan: PredictPlan, folder: PredictFolder, predictions: Path, output: Path
) -> dict[str, Json]:
    """Score predictions with the contract's own scorer, as `fairtrial score` does."""
    if plan.contract == ACTION_IR:
        return score_files(folder.file(MANIFEST_FILE), predictions, output).aggregate
    declaration = folder.file(DECLARATION_FILE)
    score = (
        score_json_records if plan.contract == JSON_RECORDS else score_classification
    )
    return score(declaration, predictions, output, metric=plan.metric).aggregate
