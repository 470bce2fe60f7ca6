"""`eval_plan.jsonl`: the authorized plan, kept beside the evidence.

The first line says who is asked what, by which source, config and policy; each
further line holds one task with everything that scoring needs. A run folder can
therefore be scored again alone. The file is written whole before the first request
and never changes; its lines have the form of a log's lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from harness.canonical import Json, canonical_bytes, content_hash
from harness.conversation.task import ScoringPolicy, TaskSpec
from harness.errors import ArtifactError
from harness.evidence.artifacts import write_once
from harness.evidence.episode import Scope
from harness.evidence.log import AppendLog
from harness.evidence.log_line import Entry, LogFormat, encode_line
from harness.evidence.log_reader import LogReader
from harness.evidence.records import Record

PLAN_VERSION: Final = "1.0"
PLAN_FILE: Final = LogFormat(
    file_name="eval_plan.jsonl",
    record_types=("header", "task"),
    key_field="task_key",
    number_field=None,
    invalid_code="eval_artifact_invalid",
    conflict_code="eval_cli_artifact_conflict",
)


@dataclass(frozen=True, slots=True)
class PlannedCandidate(Record):
    """One candidate and its tasks."""

    alias: str
    canonical_id: str
    task_ids: tuple[str, ...] | None
    """In the order of asking; None for all tasks of the plan in their order."""


@dataclass(frozen=True, slots=True)
class PlanHeader(Record):
    """What was authorized, before the first request."""

    schema_version: str
    scope: Scope
    plan_identity: str
    eval_config_hash: str
    source_run_id: str
    source_verification_identity: str
    oracle_verification_identity: str | None
    scoring_policy_hash: str
    scoring_policy: ScoringPolicy
    trials: int
    task_ids: tuple[str, ...]
    """All planned tasks in the order of their lines; a shorter file is not whole."""
    candidates: tuple[PlannedCandidate, ...]
    facts: dict[str, Any]
    """What reports repeat: the source's description, publication reasons, caps."""


def task_key(task_id: str) -> str:
    """Return the key under which a task's line is found."""
    return content_hash({"task_id": task_id})


def write_plan(path: Path, header: PlanHeader, specs: Iterable[TaskSpec]) -> str:
    """Write the plan once and return the file's content hash.

    Tasks are taken one by one; they must be those of `header.task_ids`. Raises
    ArtifactError (`eval_cli_artifact_conflict`) when the folder keeps another plan,
    EvidenceError when the machine refuses.
    """
    return write_once(path, _lines(header, specs))


def _lines(header: PlanHeader, specs: Iterable[TaskSpec]) -> Iterator[bytes]:
    yield _line(
        1, "header", header.plan_identity, {"header": header.semantic_payload()}
    )
    count = 0
    for sequence, spec in enumerate(specs, start=2):
        payload = {
            "task": spec.semantic_payload(),
            "task_spec_hash": spec.identity_hash(),
        }
        yield _line(sequence, "task", task_key(spec.task_id), payload)
        count += 1
    if count != len(header.task_ids):
        raise _incomplete(len(header.task_ids), count)


def _line(sequence: int, record_type: str, key: str, payload: Json) -> bytes:
    line, _ = encode_line(
        PLAN_FILE,
        sequence=sequence,
        record_type=record_type,
        key=key,
        number=None,
        payload=canonical_bytes(payload),
    )
    return line


class PlanFile:
    """A plan that was read back; tasks are decoded when they are asked for."""

    def __init__(self, log: LogReader) -> None:
        """Read the header of an open log; raise as `open` does."""
        self.log = log
        self.header = _header(log)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open and verify a plan.

        Raises EvidenceError (`eval_artifact_invalid`) at damage and ArtifactError
        when the file is no whole plan.
        """
        log = AppendLog.open(
            path, PLAN_FILE, writable=False, guarded=True, visit=check_order
        )
        try:
            return cls(log)
        except BaseException:
            log.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.log) - 1

    @property
    def content_hash(self) -> str:
        """The hash of the whole file."""
        return self.log.content_hash

    @property
    def merkle_root(self) -> str:
        """The root over header and tasks in file order."""
        return self.log.merkle_root

    @property
    def record_count(self) -> int:
        """Number of lines: the header and the tasks."""
        return len(self.log)

    def task(self, task_id: str) -> TaskSpec:
        """Return one task; raise ArtifactError if the plan does not have it."""
        for entry in self.log.entries_of(task_key(task_id), "task"):
            return _task(entry)
        raise ArtifactError(
            "eval_artifact_invalid",
            "the plan does not have this task",
            where=f"{PLAN_FILE.file_name}, task {task_id}",
            expected=f"one of {len(self)} planned tasks",
            recovery="name a task of the run, or use the folder it belongs to",
        )

    def __contains__(self, task_id: object) -> bool:
        return isinstance(task_id, str) and any(
            self.log.entries_of(task_key(task_id), "task")
        )

    def tasks(self) -> Iterator[TaskSpec]:
        """Yield all tasks in file order, one at a time."""
        for record in range(1, len(self.log)):
            yield _task(self.log.entry(record))

    def tasks_for(self, candidate: PlannedCandidate) -> Iterator[TaskSpec]:
        """Yield a candidate's tasks in the order of asking."""
        if candidate.task_ids is None:
            yield from self.tasks()
            return
        for task_id in candidate.task_ids:
            yield self.task(task_id)

    def close(self) -> None:
        """Close the file."""
        self.log.close()


def _task(entry: Entry) -> TaskSpec:
    task, stated_hash = entry.members("task", "task_spec_hash")
    spec = TaskSpec.from_payload(task)
    if task_key(spec.task_id) != entry.key:
        raise entry.refusal(f"the key is not that of task {spec.task_id}")
    if stated_hash != spec.identity_hash():
        raise entry.refusal("task_spec_hash is not the hash of the task")
    return spec


def check_order(log: LogReader, entry: Entry) -> None:
    """Refuse a line that could not have been written where it stands."""
    if (entry.record_type == "header") != (entry.sequence == 1):
        raise entry.refusal("the header is the first line and only that")
    if entry.record_type == "task" and any(log.entries_of(entry.key, "task")):
        raise entry.refusal("the task is in the plan already", conflict=True)


def _header(log: LogReader) -> PlanHeader:
    if log.torn is not None or not len(log):
        raise _incomplete(None, max(0, len(log) - 1))
    header = PlanHeader.from_payload(log.entry(0).member("header"))
    if len(log) - 1 != len(header.task_ids):
        raise _incomplete(len(header.task_ids), len(log) - 1)
    return header


def _incomplete(expected: int | None, actual: int) -> ArtifactError:
    return ArtifactError(
        "eval_artifact_invalid",
        "the plan is not whole",
        where=PLAN_FILE.file_name,
        expected="a header and whole lines of tasks"
        if expected is None
        else f"{expected} tasks",
        actual=f"{actual} tasks",
        recovery="bring back an intact copy of the run folder",
    )
