"""Rows of a chat endpoint beside the exchanges that they came from.

What a row came to is kept apart from the requests and responses, so the two can
contradict each other in a folder whose hashes are all right. Every final row has to
follow from the recorded response to the very request that the row gives. A power cut
may take the end of the one log and leave the other whole: such a row is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from harness.config.predict_document import ChatHttpSection
from harness.engines.protocol import Generation, PromptRow
from harness.errors import ArtifactError, Violation
from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.generation_log import (
    GENERATION_LOG,
    GenerationLog,
    RecordedRow,
)
from harness.predict.folder import PredictFolder
from harness.predict.plan import PredictPlan
from harness.predict.registry import EnginePlace, chat_engine, decoding_of
from harness.predictions.questions import Question

_DERIVED: Final = (
    "text",
    "finish_reason",
    "failure",
    "prompt_tokens",
    "generated_tokens",
)


class UnbackedRow(NamedTuple):
    """A final row that does not follow from a recorded exchange."""

    row: RecordedRow
    derived: Generation | None
    """What the exchange of its request gives; None where there is no such exchange."""

    def violation(self) -> Violation:
        """Return the row as a contradiction of the folder."""
        row = self.row
        return Violation(
            "eval_artifact_invalid",
            f"{GENERATION_LOG.file_name}, subject {row.subject}, row {row.row_id}",
            "the row does not follow from a recorded exchange",
            f"what {CANDIDATE_LOG.file_name} holds for its request",
            "no exchange of that request"
            if self.derived is None
            else f"another {', '.join(_differing(row, self.derived))}",
            "bring back an intact copy of the folder",
        )


class Exchanges:
    """Both logs of a predict folder, held against each other."""

    def __init__(
        self,
        plan: PredictPlan,
        folder: PredictFolder,
        logs: tuple[CandidateLog, GenerationLog],
    ) -> None:
        """Look at the open logs of a folder."""
        self._plan = plan
        self._folder = folder
        self._requests, self._generations = logs

    def unbacked(self, questions: Sequence[Question]) -> Iterator[UnbackedRow]:
        """Yield the final rows without their exchange; raises EvidenceError."""
        decoding = decoding_of(self._plan.decoding)
        for subject in self._plan.subjects:
            section, prompt = subject.section, subject.prompt
            if not isinstance(section, ChatHttpSection) or prompt is None:
                continue
            place = EnginePlace(
                self._folder.path,
                self._plan.config_folder,
                self._requests,
                subject.index,
            )
            engine = chat_engine(section, None, place)
            for question in questions:
                row = self._generations.row(subject.name, question.id)
                if row is None or row.stopped:
                    continue
                asked = PromptRow(question.id, prompt.messages(question))
                derived = engine.recorded(asked, decoding)
                if derived is None or _differing(row, derived):
                    yield UnbackedRow(row, derived)

    def open_again(self, questions: Sequence[Question]) -> None:
        """Have rows asked again whose exchange is lost.

        Raises ArtifactError for rows that contradict their exchange.
        """
        unbacked = list(self.unbacked(questions))
        require_none([each for each in unbacked if each.derived is not None])
        for each in unbacked:
            self._generations.withdraw(each.row)


def require_none(unbacked: Sequence[UnbackedRow]) -> None:
    """Raise ArtifactError for rows that do not follow from a recorded exchange."""
    if unbacked:
        raise ArtifactError.from_violations(tuple(u.violation() for u in unbacked))


def unbacked_rows(
    plan: PredictPlan, folder: PredictFolder, questions: Sequence[Question]
) -> list[Violation]:
    """Return the final rows of a folder that do not follow from a recorded exchange.

    Raises EvidenceError for a log that is damaged.
    """
    if not any(isinstance(each.section, ChatHttpSection) for each in plan.subjects):
        return []
    rows, exchanges = (
        folder.file(each.file_name) for each in (GENERATION_LOG, CANDIDATE_LOG)
    )
    with (
        GenerationLog.open(rows, writable=False) as generations,
        CandidateLog.open(exchanges, writable=False) as requests,
    ):
        found = Exchanges(plan, folder, (requests, generations)).unbacked(questions)
        return [each.violation() for each in found]


def _differing(row: RecordedRow, derived: Generation) -> list[str]:
    return [n for n in _DERIVED if getattr(row, n) != getattr(derived, n)]
