"""Rows of a chat endpoint beside the exchanges that they came from.

What a row came to is kept apart from the requests and responses, so the two can
contradict each other in a folder whose hashes are all right. Every final row has to
follow from the recorded response to the very request that the row gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.config.predict_document import ChatHttpSection
from harness.engines.protocol import Decoding, Generation, PromptRow
from harness.errors import Violation
from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.generation_log import (
    GENERATION_LOG,
    GenerationLog,
    GenerationRecords,
    RecordedRow,
)
from harness.predict.folder import PredictFolder
from harness.predict.plan import PredictPlan, Subject
from harness.predict.registry import EnginePlace, chat_engine, decoding_of
from harness.predictions.questions import Question

_DERIVED: Final = (
    "text",
    "finish_reason",
    "failure",
    "prompt_tokens",
    "generated_tokens",
)


def unbacked_rows(
    plan: PredictPlan, folder: PredictFolder, questions: Sequence[Question]
) -> list[Violation]:
    """Return the final rows that do not follow from a recorded exchange.

    Raises EvidenceError for a log that is damaged.
    """
    asked = [
        each for each in plan.subjects if isinstance(each.section, ChatHttpSection)
    ]
    if not asked:
        return []
    rows, exchanges = (
        folder.file(each.file_name) for each in (GENERATION_LOG, CANDIDATE_LOG)
    )
    with (
        GenerationLog.open(rows, writable=False) as generations,
        CandidateLog.open(exchanges, writable=False) as log,
    ):
        decoding = decoding_of(plan.decoding)
        return [
            violation
            for subject in asked
            for violation in _of_subject(
                subject,
                EnginePlace(folder.path, plan.config_folder, log, subject.index),
                decoding,
                generations,
                questions,
            )
        ]


def _of_subject(
    subject: Subject,
    place: EnginePlace,
    decoding: Decoding,
    generations: GenerationRecords,
    questions: Sequence[Question],
) -> Iterator[Violation]:
    section, prompt = subject.section, subject.prompt
    if not isinstance(section, ChatHttpSection) or prompt is None:
        return
    engine = chat_engine(section, None, place)
    for question in questions:
        stored = generations.row(subject.name, question.id)
        if stored is None or stored.stopped:
            continue
        row = PromptRow(question.id, prompt.messages(question))
        derived = engine.recorded(row, decoding)
        if derived is None or _differing(stored, derived):
            yield _unbacked(subject, stored, derived)


def _differing(stored: RecordedRow, derived: Generation) -> list[str]:
    return [n for n in _DERIVED if getattr(stored, n) != getattr(derived, n)]


def _unbacked(
    subject: Subject, stored: RecordedRow, derived: Generation | None
) -> Violation:
    return Violation(
        "eval_artifact_invalid",
        f"{GENERATION_LOG.file_name}, subject {subject.name}, row {stored.row_id}",
        "the row does not follow from a recorded exchange",
        f"what {CANDIDATE_LOG.file_name} holds for its request",
        "no exchange of that request"
        if derived is None
        else f"another {', '.join(_differing(stored, derived))}",
        "bring back an intact copy of the folder",
    )
