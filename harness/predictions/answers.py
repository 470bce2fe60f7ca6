"""Scores rows of answers under JSON records v2 or classification v1, file to files.

A rows file holds gold and outputs together, one JSON object a line; a receipt beside
it is compared. What the operator declares, the schema or the labels, is read strictly.
The output folder appears with both of its files complete, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from harness.canonical import Json, type_tag
from harness.errors import UsageError
from harness.predictions.action_ir import AGGREGATE, SAMPLE_SCORES, aggregate_bytes
from harness.predictions.digests import file_sha256
from harness.predictions.json_lines import line_bytes, read_rows
from harness.predictions.output_folder import new_folder, require_absent
from harness.predictions.receipts import verify_predictions
from harness.predictions.record_schema import (
    CompiledSchema,
    compile_schema,
    unusable_schema,
)
from harness.predictions.watch import ScoringWatch, watched
from harness.regular_file import read_regular_file, require_file
from harness.scoring.answers import AnswerRow, RowIds, answer_row, primary_metric
from harness.scoring.classification.aggregate import LabelAggregator
from harness.scoring.classification.label import Vocabulary, score_label
from harness.scoring.json_record.aggregate import RecordAggregator
from harness.scoring.json_record.record import score_record
from harness.strict_json import (
    StrictJsonError,
    decode_document,
    has_unpaired_surrogate,
)

JSON_TASK: Final = "json"
CLASSIFICATION_TASK: Final = "classification"


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """The result of one scoring and what it was made from; hashes are 64 hex digits."""

    aggregate: dict[str, Json]
    aggregate_sha256: str
    sample_scores_sha256: str
    rows_sha256: str
    declaration_sha256: str
    """Of the schema file or the labels file."""


def score_json_records(
    schema: Path,
    rows: Path,
    output: Path,
    *,
    metric: str | None = None,
    watch: ScoringWatch[ScoredAnswers] | None = None,
) -> ScoredAnswers:
    """Write `sample_scores.jsonl` and `aggregate.json` into a new folder.

    `watch` sees every row and the folder. Raises UsageError for files or a schema that
    cannot be used, for a metric that the task does not have and for an output that
    exists; SourceError for rows that a receipt beside them does not state,
    EvidenceError for a broken line and AnswerRowError for rows that cannot be scored.
    """
    primary = primary_metric(JSON_TASK, metric)
    require_file(schema, "--schema")
    require_file(rows, "--rows")
    require_absent(output)
    verify_predictions(rows)
    compiled = read_schema(schema)
    aggregator = RecordAggregator(compiled.document, primary)

    def score(row: AnswerRow) -> dict[str, Json]:
        found = score_record(row.raw, row.gold, compiled)
        aggregator.add(row, found)
        return {
            **found.as_record(),
            "schema_undecided": found.schema == "undecided",
        }

    answers = watched(watch, read_answers(rows, dict), _told)
    return _score(schema, answers, rows, output, score, aggregator, watch)


def score_classification(
    labels: Path,
    rows: Path,
    output: Path,
    *,
    metric: str | None = None,
    watch: ScoringWatch[ScoredAnswers] | None = None,
) -> ScoredAnswers:
    """Write `sample_scores.jsonl` and `aggregate.json` into a new folder.

    Raises what `score_json_records` raises, with labels in the place of a schema.
    """
    primary = primary_metric(CLASSIFICATION_TASK, metric)
    require_file(labels, "--labels")
    require_file(rows, "--rows")
    require_absent(output)
    verify_predictions(rows)
    vocabulary = Vocabulary(read_labels(labels))
    aggregator = LabelAggregator(primary)

    def score(row: AnswerRow) -> dict[str, Json]:
        found = score_label(row.raw, row.gold, vocabulary)
        aggregator.add(row, found)
        return found.as_record()

    answers = watched(watch, read_answers(rows, str), _told)
    return _score(labels, answers, rows, output, score, aggregator, watch)


def read_schema(path: Path) -> CompiledSchema:
    """Read and compile a schema; raise UsageError with all that is wrong with it.

    A schema of records has `type: object`, or `properties` at least.
    """
    document = _declaration(path, "--schema", "a JSON Schema")
    is_record = isinstance(document, dict) and (
        document.get("type") == "object" or "properties" in document
    )
    if not is_record:
        seen = "neither `type: object` nor `properties`"
        raise unusable_schema([(path.name, seen)])
    return compile_schema(document, where=path.name)


def read_labels(path: Path) -> list[str]:
    """Read a label list; raise UsageError (`eval_cli_invalid`)."""
    labels = _declaration(path, "--labels", "a JSON array of strings")
    is_list = isinstance(labels, list) and labels
    seen = "an empty array" if labels == [] else f"a JSON {type_tag(labels)}"
    if is_list and all(isinstance(label, str) for label in labels):
        if not any(map(has_unpaired_surrogate, labels)):
            return list(labels)
        seen = "text with an unpaired surrogate"
    elif is_list:
        seen = "members that are no strings"
    raise _unusable(path, "--labels", "a JSON array of strings", seen)


def read_answers(path: Path, gold_type: type) -> Iterator[AnswerRow]:
    """Yield the rows of a file; raise EvidenceError or AnswerRowError."""
    ids, name = RowIds(), path.name
    for number, payload in enumerate(read_rows(path), 1):
        where = f"{name}:{number}"
        row = answer_row(payload, gold_type, where=where)
        ids.add(row, where=where)
        yield row


def gold_violations(rows: Iterable[AnswerRow], schema: CompiledSchema) -> Iterator[str]:
    """Yield the ids of rows whose gold does not satisfy the schema.

    Scoring does not ask: such a row can be answered right in no way, and that is an
    error of the data and none of the candidate.
    """
    for row in rows:
        if schema.judge(row.gold) != "valid":
            yield row.id


def _score(
    declaration: Path,
    answers: Iterable[AnswerRow],
    rows: Path,
    output: Path,
    score: Callable[[AnswerRow], dict[str, Json]],
    aggregator: RecordAggregator | LabelAggregator,
    watch: ScoringWatch[ScoredAnswers] | None,
) -> ScoredAnswers:
    digest = sha256()
    with new_folder(output) as folder:
        with (folder / SAMPLE_SCORES).open("wb") as stream:
            for row in answers:
                line = line_bytes(
                    {
                        "id": row.id,
                        "finish_reason": row.finish_reason,
                        "truncated": row.is_truncated,
                        **score(row),
                    }
                )
                digest.update(line)
                stream.write(line)
        aggregate = aggregator.result()
        total = aggregate_bytes(aggregate)
        (folder / AGGREGATE).write_bytes(total)
        scored = ScoredAnswers(
            aggregate=aggregate,
            aggregate_sha256=sha256(total).hexdigest(),
            sample_scores_sha256=digest.hexdigest(),
            rows_sha256=file_sha256(rows),
            declaration_sha256=file_sha256(declaration),
        )
        if watch is not None:
            watch.finish(folder, scored)
    return scored


def _told(row: AnswerRow) -> tuple[Json, Json, Json]:
    return row.id, row.gold, None


def _declaration(path: Path, option: str, expected: str) -> Json:
    try:
        return decode_document(read_regular_file(path))
    except StrictJsonError as error:
        raise _unusable(path, option, expected, str(error)) from None


def _unusable(path: Path, option: str, expected: str, seen: str) -> UsageError:
    return UsageError(
        "eval_cli_invalid",
        f"{option} names a file that cannot be used",
        where=path.name,
        expected=f"{expected}, in strict JSON",
        actual=seen,
        recovery="mend the file and score again; nothing was written",
    )
