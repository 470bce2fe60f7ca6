"""Episodes whose verdict is another one than the recorded, and what moved it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal

from harness.conversation.task import ScoringPolicy
from harness.errors import ArtifactError
from harness.evidence.records import Record
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import STRETCH, Stretch

VerdictWord = Literal["success", "failure", "stop"]


@dataclass(frozen=True, slots=True)
class VerdictChange(Record):
    """One episode with both verdicts; gates in the order of the gate table."""

    candidate_alias: str
    task_id: str
    trial: int
    recorded: VerdictWord
    verdict: VerdictWord
    gates_now_against: tuple[str, ...]
    """Gates that deny success now and did not before."""
    gates_no_longer_against: tuple[str, ...]


class ChangeList:
    """Compares new rows with the recorded ones while both stream by.

    A stretch of rows that is the recorded one has no changes; only in another one are
    the rows looked at one by one.
    """

    def __init__(
        self, recorded: Iterator[Stretch], before: ScoringPolicy, after: ScoringPolicy
    ) -> None:
        """Take the recorded rows, made under `before`."""
        self._recorded = recorded
        self._before = before
        self._after = after
        self._waiting: list[TaskRow] = []
        """New rows that make no whole stretch yet."""
        self._found: list[VerdictChange] = []

    def take(self, row: TaskRow) -> None:
        """Compare the next new row; raise ArtifactError if it has no counterpart."""
        self._waiting.append(row)
        if len(self._waiting) == STRETCH:
            self._compare()

    def end(self) -> list[VerdictChange]:
        """Return all changes; raises as `take` does."""
        self._compare()
        return self._found

    def _compare(self) -> None:
        rows, self._waiting = self._waiting, []
        recorded = next(self._recorded, None) if rows else None
        if recorded is not None and recorded.holds(rows):
            return
        old = () if recorded is None else recorded.rows()
        for row, other in zip(rows, chain(old, repeat(None)), strict=False):
            self._compare_row(row, other)

    def _compare_row(self, row: TaskRow, old: TaskRow | None) -> None:
        if old is None or _key(old) != _key(row):
            raise _misfit(row, old)
        if verdict_of(old) != verdict_of(row):
            before = _against(old, self._before)
            after = _against(row, self._after)
            self._found.append(
                VerdictChange(
                    row.candidate_alias,
                    row.task_id,
                    row.trial,
                    verdict_of(old),
                    verdict_of(row),
                    tuple(gate for gate in after if gate not in before),
                    tuple(gate for gate in before if gate not in after),
                )
            )


def verdict_of(row: TaskRow) -> VerdictWord:
    """Return a row's verdict in one word."""
    if row.task_success:
        return "success"
    return "stop" if row.non_candidate_stop else "failure"


def _against(row: TaskRow, policy: ScoringPolicy) -> list[str]:
    """Return the gates that deny a row success under a policy."""
    failed = [each for each in row.failure_records if each.layer == "gate"]
    if policy.task_success == "all_applicable_gates":
        return [each.subject for each in failed]
    broken = [each.subject for each in failed if each.attribution == "infrastructure"]
    if row.assertions_passed is not True and "assertions" not in broken:
        broken.append("assertions")
    return broken


def _key(row: TaskRow) -> tuple[str, str, int]:
    return row.candidate_alias, row.task_id, row.trial


def _misfit(row: TaskRow, old: TaskRow | None) -> ArtifactError:
    return ArtifactError(
        "eval_artifact_invalid",
        "the recorded task table does not have the plan's episodes",
        where="eval_task_results.parquet",
        expected=" ".join(map(str, _key(row))),
        actual="the end" if old is None else " ".join(map(str, _key(old))),
        recovery="`fairtrial replay RUN` shows where the folder was changed",
    )
