"""Rows that a bundle keeps as digests: which rows, and what is left of one.

A row is withheld whole or not at all, because its hash covers it whole. What is left
is one canonical line of the row's place, kind, key and hash, with `"withheld":true`
in the place of its payload. The hash takes part in the Merkle root as before, so the
root still commits to the row; place, kind and key are stated by whoever sealed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from harness.canonical import Json, canonical_bytes, is_content_hash
from harness.errors import EvidenceError, UsageError
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.episode_log import EPISODE_LOG
from harness.evidence.log_line import LOG_VERSION, Entry, LineError, LogFormat
from harness.evidence.plan_file import PLAN_FILE
from harness.strict_json import StrictJsonError, decode_document

_TASKS: Final = (PLAN_FILE.file_name, "task")
_REQUESTS: Final = (CANDIDATE_LOG.file_name, "request")
_ATTEMPTS: Final = (CANDIDATE_LOG.file_name, "attempt")
_COMPLETIONS: Final = (CANDIDATE_LOG.file_name, "completion")
_EPISODES: Final = (EPISODE_LOG.file_name, "completion")
WORDS: Final[dict[str, frozenset[tuple[str, str]]]] = {
    "prompts": frozenset({_TASKS, _REQUESTS}),
    "responses": frozenset({_REQUESTS, _ATTEMPTS, _COMPLETIONS, _EPISODES}),
    "results": frozenset({_TASKS, _REQUESTS, _EPISODES}),
    "bodies": frozenset({_ATTEMPTS}),
}
"""Every kind of row that holds such a thing, by word: a request repeats earlier
answers and results, a task holds its prompt and its gold."""
TASK_PREFIX: Final = "task:"
_MARK: Final = b'"withheld":true'


class WithheldError(EvidenceError):
    """Something rests on a row that was withheld: no damage, and no knowledge."""


class WithheldEntry(Entry):
    """A row of which only place, kind, key and hash are left."""

    __slots__ = ()

    @property
    def is_withheld(self) -> bool:
        """Return True."""
        return True

    def payload(self) -> Json:
        """Raise WithheldError."""
        raise WithheldError(
            "eval_evidence_invalid",
            "a row was withheld when the bundle was sealed",
            where=f"{self.log.file_name}, record {self.sequence}",
            expected="the row itself",
            actual="its digest",
            recovery="ask whoever sealed the bundle for the whole run",
        )


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is withheld from one bundle."""

    words: frozenset[str]
    task_ids: frozenset[str]

    @classmethod
    def of(cls, given: Iterable[str]) -> Redaction:
        """Read words and `task:ID`; raise UsageError for anything else."""
        texts = frozenset(given)
        tasks = frozenset(t for t in texts if t.startswith(TASK_PREFIX))
        unknown = sorted(texts - tasks - WORDS.keys())
        if unknown:
            raise UsageError(
                "eval_cli_invalid",
                "this cannot be withheld",
                where="--redact",
                expected=f"{', '.join(WORDS)} or {TASK_PREFIX}ID",
                actual=", ".join(unknown),
                recovery="see docs/reference/bundle.md",
            )
        return cls(texts - tasks, frozenset(t.removeprefix(TASK_PREFIX) for t in tasks))

    def as_list(self) -> list[str]:
        """Return the texts in their one order."""
        return sorted([*self.words, *(f"{TASK_PREFIX}{id_}" for id_ in self.task_ids)])

    def covers_kind(self, entry: Entry) -> bool:
        """Tell whether every row of this row's kind is withheld."""
        kind = (entry.log.file_name, entry.record_type)
        return any(kind in WORDS[word] for word in self.words)


def withheld_line(entry: Entry) -> bytes:
    """Return what a bundle keeps of a row, with its newline."""
    fields: dict[str, Json] = {
        "record_hash": "sha256:" + entry.digest.hex(),
        "record_type": entry.record_type,
        "schema_version": LOG_VERSION,
        "sequence": entry.sequence,
        "withheld": True,
        entry.log.key_field: entry.key,
    }
    if entry.number is not None and entry.log.number_field is not None:
        fields[entry.log.number_field] = entry.number
    return canonical_bytes(fields) + b"\n"


def read_withheld(log: LogFormat, line: bytes, offset: int) -> WithheldEntry | None:
    """Read what is left of a row; None for a line that is none, LineError for a bad
    one.
    """
    if _MARK not in line or b'"payload"' in line:
        return None
    try:
        fields = decode_document(line)
        entry = _entry(log, fields, offset)
        exact = withheld_line(entry) == line + b"\n"
    except (StrictJsonError, LookupError, TypeError, ValueError) as error:
        raise LineError(f"the line is no withheld record ({error})") from None
    if not exact:
        raise LineError("the line is not the one text of a withheld record")
    return entry


def _entry(log: LogFormat, fields: Json, offset: int) -> WithheldEntry:
    record_hash, key = fields["record_hash"], fields[log.key_field]
    number = None if log.number_field is None else fields.get(log.number_field)
    sound = (
        is_content_hash(record_hash)
        and is_content_hash(key)
        and fields["record_type"] in log.record_types
        and type(fields["sequence"]) is int
        and (number is None or (type(number) is int and number >= 0))
    )
    if not sound:
        raise ValueError("a field is not what it has to be")
    return WithheldEntry(
        log,
        fields["sequence"],
        offset,
        fields["record_type"],
        key,
        number,
        bytes.fromhex(record_hash.removeprefix("sha256:")),
        b"",
    )
