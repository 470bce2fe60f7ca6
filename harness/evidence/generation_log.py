"""`generation_log.jsonl`: what every row of a predict run came to, before any parsing.

A `generation` is final: a text, or a failure that is the model's own. A `stop` is a row
without an answer for a reason that is not the model's; a later `generation` or `stop`
replaces it. A `withdrawal` opens a final row again whose exchange was lost. A `session`
is one process that worked on a subject, with what it loaded. A `vector` is what an
embedding engine gave for a text. `measurements` are what an engine measured of itself.
The key names subject and row, the subject, or the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from harness.canonical import Json, content_hash
from harness.errors import EvidenceError
from harness.evidence.log import AppendLog
from harness.evidence.log_line import Entry, LogFormat
from harness.evidence.log_reader import LogReader, TornTail

GENERATION_LOG: Final = LogFormat(
    file_name="generation_log.jsonl",
    record_types=(
        "generation",
        "stop",
        "session",
        "vector",
        "measurements",
        "withdrawal",
    ),
    key_field="row_key",
    number_field=None,
    invalid_code="eval_evidence_invalid",
    conflict_code="eval_evidence_invalid",
)


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """What one row of one subject came to."""

    subject: str
    row_id: str
    prompt_hash: str
    """Content hash of the messages."""
    text: str | None
    """As it was decoded or received, never trimmed; None for a failed row."""
    finish_reason: str | None
    failure: str | None
    stopped: bool
    """Whether the failure is none of the model's."""
    prompt_tokens: int | None
    generated_tokens: int | None
    elapsed_s: float | None
    conditions: dict[str, Any]
    """What was observed on this row, the engine's own conditions among it."""
    applied: dict[str, Any]
    """Decoding as applied on this row, `unknown` where nobody can tell."""
    session: int
    """Which process took it: the number of records that it found in the log."""
    since_start_s: float
    """Seconds from the beginning of that process's work on the subject."""

    def as_payload(self) -> dict[str, Json]:
        """Return the payload of the record."""
        return {name: getattr(self, name) for name in self.__slots__}


class GenerationRecords:
    """The log for reading."""

    def __init__(self, log: LogReader) -> None:
        self.log = log

    def row(self, subject: str, row_id: str) -> RecordedRow | None:
        """Return what a row came to last; None where nothing stands of it."""
        newest = _newest(self.log, _row_key(subject, row_id))
        if newest is None or newest.record_type == "withdrawal":
            return None
        return _row(newest)

    def is_final(self, subject: str, row_id: str) -> bool:
        """Tell whether a row needs no more asking."""
        newest = _newest(self.log, _row_key(subject, row_id))
        return newest is not None and newest.record_type == "generation"

    def vector(self, engine: str, text: str) -> list[float] | None:
        """Return the recorded vector of a text."""
        for entry in self.log.entries_of(_vector_key(engine, text), "vector"):
            found: list[float] = entry.member("vector")
            return found
        return None

    def vector_conditions(self, engine: str, text: str) -> dict[str, Json]:
        """Return what was observed when a text was embedded."""
        for entry in self.log.entries_of(_vector_key(engine, text), "vector"):
            found: dict[str, Json] = entry.member("conditions")
            return found
        return {}

    def sessions(self, subject: str) -> list[dict[str, Json]]:
        """Return the processes that worked on a subject, in order."""
        found = self.log.entries_of(_subject_key(subject), "session")
        return [entry.payload() for entry in found][::-1]

    def measurements(self, subject: str) -> list[dict[str, Json]] | None:
        """Return what was measured of a subject, None where nothing was yet."""
        for entry in self.log.entries_of(_subject_key(subject), "measurements"):
            found: list[dict[str, Json]] = entry.member("measurements")
            return found
        return None


class GenerationLog(GenerationRecords):
    """The log for writing; a context manager that syncs and closes."""

    log: AppendLog

    @classmethod
    def open(cls, path: Path, *, writable: bool) -> Self:
        """Open and verify the log; raise EvidenceError (see `AppendLog.open`)."""
        return cls(
            AppendLog.open(path, GENERATION_LOG, writable=writable, visit=check_order)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    @property
    def torn(self) -> TornTail | None:
        """The unterminated last line that opening found."""
        return self.log.torn

    def add(self, row: RecordedRow) -> None:
        """Record what a row came to; raise EvidenceError after a final answer."""
        if self.is_final(row.subject, row.row_id):
            raise _twice(f"subject {row.subject}, row {row.row_id}")
        self.log.append(
            "stop" if row.stopped else "generation",
            _row_key(row.subject, row.row_id),
            row.as_payload(),
        )

    def sync(self) -> None:
        """Make everything recorded survive a power loss."""
        self.log.sync()

    def withdraw(self, row: RecordedRow) -> None:
        """Open a final row again; what was recorded of it stays."""
        names = {"row_id": row.row_id, "subject": row.subject}
        self.log.append("withdrawal", _row_key(row.subject, row.row_id), names)

    def begin(
        self,
        subject: str,
        conditions: Mapping[str, Json],
        checkpoint_sha256: Mapping[str, str] | None,
        checkpoint_dir: str | None = None,
    ) -> int:
        """Record that this process works on a subject; return its session number."""
        session = len(self.log)
        self.log.append(
            "session",
            _subject_key(subject),
            {
                "checkpoint_dir": checkpoint_dir,
                "checkpoint_sha256": None
                if checkpoint_sha256 is None
                else dict(checkpoint_sha256),
                "conditions": dict(conditions),
                "session": session,
                "subject": subject,
            },
        )
        return session

    def add_vector(
        self,
        engine: str,
        text: str,
        vector: Sequence[float],
        conditions: Mapping[str, Json],
    ) -> None:
        """Record the vector of a text."""
        self.log.append(
            "vector",
            _vector_key(engine, text),
            {
                "conditions": dict(conditions),
                "engine": engine,
                "text": text,
                "vector": list(vector),
            },
        )

    def add_measurements(
        self, subject: str, measurements: Sequence[Mapping[str, Json]]
    ) -> None:
        """Record what an engine measured."""
        self.log.append(
            "measurements",
            _subject_key(subject),
            {"measurements": [dict(each) for each in measurements], "subject": subject},
        )


def check_order(log: LogReader, entry: Entry) -> None:
    """Refuse a record that could not have been written where it stands."""
    if entry.record_type in ("vector", "session"):
        return
    if entry.record_type == "measurements":
        final = next(log.entries_of(entry.key, "measurements"), None) is not None
    else:
        newest = _newest(log, entry.key)
        final = newest is not None and newest.record_type == "generation"
        if entry.record_type == "withdrawal":
            if not final:
                raise entry.refusal("it withdraws what is not final", conflict=True)
            return
    if final:
        raise entry.refusal("it follows a final record of its key", conflict=True)


def _newest(log: LogReader, row_key: str) -> Entry | None:
    return next(log.entries_of(row_key, "generation", "stop", "withdrawal"), None)


def _row(entry: Entry) -> RecordedRow:
    names = tuple(RecordedRow.__slots__)
    row = RecordedRow(*entry.members(*names))
    if row.stopped is not (entry.record_type == "stop"):
        raise entry.refusal("its type and its payload contradict each other")
    return row


def _row_key(subject: str, row_id: str) -> str:
    return content_hash({"row_id": row_id, "subject": subject})


def _vector_key(engine: str, text: str) -> str:
    return content_hash({"engine": engine, "text": text})


def _subject_key(subject: str) -> str:
    return content_hash({"subject": subject})


def _twice(where: str) -> EvidenceError:
    return EvidenceError(
        GENERATION_LOG.conflict_code,
        "a row has a final answer already",
        where=f"{GENERATION_LOG.file_name}, {where}",
        expected="one final answer a row",
        recovery="report this as a defect; nothing was written",
    )
