"""The rows that a model is asked, read the same way for every contract.

Action IR has a manifest of its own. JSON records and classification share one: JSON
lines with `id`, `input` and `gold`, decoded strictly, other members ignored. Gold has
the type that its contract compares. All broken rows are told at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json, canonical_json, type_tag
from harness.errors import EvidenceError, Violation
from harness.predictions.generation import read_generation_manifest
from harness.regular_file import open_regular_file
from harness.strict_json import (
    StrictJsonError,
    decode_document,
    has_unpaired_surrogate,
)

ACTION_IR: Final = "action-ir"
JSON_RECORDS: Final = "json-records"
CLASSIFICATION: Final = "classification"
_GOLD: Final = {JSON_RECORDS: "object", CLASSIFICATION: "str"}
_MOST_TOLD: Final = 20
_SURROGATES: Final = "unpaired surrogates"


@dataclass(frozen=True, slots=True)
class Question:
    """One row: what is asked, and what would be right."""

    id: str
    input: Json
    gold: Json

    @property
    def input_text(self) -> str:
        """The input as a prompt holds it: text as it stands, else canonical JSON."""
        return self.input if isinstance(self.input, str) else canonical_json(self.input)


def read_questions(path: Path, contract: str) -> list[Question]:
    """Read all rows of a manifest.

    Raises EvidenceError (`eval_predictions_invalid`) with every row that cannot be
    asked, and for a manifest without rows.
    """
    if contract == ACTION_IR:
        questions = [
            Question(row.id, row.prompt, row.target)
            for row in read_generation_manifest(path)
        ]
        problems = list(_unwritable(path, questions))
    else:
        questions, problems = _read_rows(path, _GOLD[contract])
    if not questions and not problems:
        problems = [_broken(path.name, "a manifest without rows", "no line")]
    if problems:
        raise EvidenceError.from_violations(tuple(problems[:_MOST_TOLD]))
    return questions


def _read_rows(path: Path, gold: str) -> tuple[list[Question], list[Violation]]:
    questions: list[Question] = []
    problems: list[Violation] = []
    seen: set[str] = set()
    with open_regular_file(path) as stream:
        for number, line in enumerate(stream, 1):
            where = f"{path.name}:{number}"
            try:
                row = decode_document(line)
            except StrictJsonError as error:
                problems.append(_broken(where, "a line is no strict JSON", str(error)))
                continue
            problem = _problem(row, gold, seen) or _unwritable_words(line, row)
            if problem:
                problems.append(_broken(where, "a row cannot be asked", problem))
                continue
            seen.add(row["id"])
            questions.append(Question(row["id"], row["input"], row["gold"]))
    return questions, problems


def _problem(row: Json, gold: str, seen: set[str]) -> str:
    if not isinstance(row, dict):
        return f"a JSON {type_tag(row)}"
    absent = [name for name in ("id", "input", "gold") if name not in row]
    if absent:
        return f"no {', '.join(absent)}"
    if not isinstance(row["id"], str) or not row["id"]:
        return "id is no text, or empty"
    if row["id"] in seen:
        return f"id {row['id']!r} stands twice"
    if type_tag(row["gold"]) != gold:
        return f"gold is a JSON {type_tag(row['gold'])}, not {gold}"
    return ""


def _unwritable_words(line: bytes, row: Mapping[str, Json]) -> str:
    """Say so where the row holds text that neither request nor record can hold."""
    # The line is UTF-8, so only an escape can make such text.
    if b"\\u" not in line:
        return ""
    parts = [row["id"], row["input"], row["gold"]]
    return _SURROGATES if has_unpaired_surrogate(canonical_json(parts)) else ""


def _unwritable(path: Path, questions: Iterable[Question]) -> Iterator[Violation]:
    """Yield rows whose text no request can hold; the manifest's reader lets it pass."""
    for number, question in enumerate(questions, 1):
        if has_unpaired_surrogate(question.id + question.input_text):
            yield _broken(f"{path.name}:{number}", "a row cannot be asked", _SURROGATES)


def _broken(where: str, problem: str, seen: str) -> Violation:
    return Violation(
        "eval_predictions_invalid",
        where,
        problem,
        "one JSON object a line with id, input and gold; ids that name one row each",
        seen,
        "mend the row; nothing was asked",
    )
