"""What each injected fault was booked as, and whether that is its cell.

A fault is on the diagonal when its episode (or run) ended in the cell that the
catalog names and the side conditions held: retried as often as allowed and no more,
its companion count raised, a lost change sent once by the oracle's own record and
nothing judged that depends on it. An undisturbed episode has to succeed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.canonical import Json
from harness.drill import cells
from harness.drill.cells import OWNERS, SUCCESS, Cell
from harness.drill.endpoint import DrillEndpoint
from harness.drill.sabotage import OracleRecord
from harness.drill.schedule import OracleHit, Round, ServingHit
from harness.evidence.task_row import TaskRow

_ASKED_ONCE: Final = frozenset(
    {
        cells.QUOTA,
        cells.CONTEXT,
        cells.OVERSIZE,
        cells.CHOICES,
        cells.FINISH_REASON,
        cells.REJECTED,
        cells.PROMPT_FILTER,
        cells.ECHOED_KEY,
    }
)
"""Cells of the provider that are never asked again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One injected fault and what became of it."""

    round_number: int
    task_id: str
    """Empty for what strikes a whole run."""
    fault: str
    expected: Cell
    booked: Cell
    problem: str = ""
    """A side condition that did not hold."""

    @property
    def is_right(self) -> bool:
        """Tell whether the entry lies on the diagonal."""
        return self.expected == self.booked and not self.problem

    def as_text(self) -> str:
        """Return the entry as a line for a person."""
        place = f"round {self.round_number}"
        if self.task_id:
            place += f", task {self.task_id}"
        text = f"{place}: {self.fault}\n    expected {self.expected.as_text()}"
        text += f"\n    booked   {self.booked.as_text()}"
        return f"{text}\n    and      {self.problem}" if self.problem else text


@dataclass(slots=True)
class Findings:
    """Everything that a drill has seen so far."""

    entries: list[Entry] = field(default_factory=list)
    undisturbed: int = 0
    disturbed_controls: list[Entry] = field(default_factory=list)
    """Episodes that met no fault and did not succeed."""
    contradictions: list[str] = field(default_factory=list)
    """Reports that do not say what was injected."""
    unreached: list[str] = field(default_factory=list)
    """Planned faults whose place no episode came to."""
    episodes: int = 0

    @property
    def off_the_diagonal(self) -> int:
        """Count everything that is not as it has to be."""
        wrong = sum(not entry.is_right for entry in self.entries)
        return wrong + len(self.disturbed_controls) + len(self.contradictions)

    def matrix(self) -> dict[str, dict[str, int]]:
        """Count entries by the owner injected and the owner booked."""
        counts = Counter((e.expected.owner, e.booked.owner) for e in self.entries)
        return {
            injected: {booked: counts[injected, booked] for booked in OWNERS}
            for injected in OWNERS
        }


def cell_of(row: TaskRow) -> Cell:
    """Return where a run booked one episode."""
    if row.task_success:
        return SUCCESS
    cause = row.cause
    if cause == SUCCESS.cause and row.failure_codes:
        cause = row.failure_codes[0]
    return Cell(row.episode_status, cause, row.owner)


def book_round(
    plan: Round,
    rows: Sequence[TaskRow],
    candidate: Mapping[str, Json],
    endpoint: DrillEndpoint,
    record: OracleRecord,
    findings: Findings,
) -> None:
    """Compare a round's rows, and the ledger of its report, with its plan."""
    by_task = {row.task_id: row for row in rows}
    findings.episodes += len(rows)
    met = record.injected()
    hit: set[str] = set()
    entries = []
    for serving in plan.serving:
        if not endpoint.injected[serving.task_id]:
            findings.unreached.append(f"{serving.task_id}: {serving.fault.name}")
            continue
        hit.add(serving.task_id)
        row = by_task[serving.task_id]
        entries.append(_serving_entry(plan.number, serving, row, endpoint))
    for oracle in plan.oracle:
        if met.get(oracle.task_id) != oracle.fault.name:
            findings.unreached.append(f"{oracle.task_id}: {oracle.fault.name}")
            continue
        hit.add(oracle.task_id)
        entries.append(_oracle_entry(plan.number, oracle, by_task, record))
    findings.entries += entries
    book_controls(plan.number, [r for r in rows if r.task_id not in hit], findings)
    check_ledger(plan.number, [e.expected for e in entries], candidate, findings)


def book_controls(number: int, rows: Iterable[TaskRow], findings: Findings) -> None:
    """Require success of every episode that met no fault."""
    for row in rows:
        findings.undisturbed += 1
        booked = cell_of(row)
        if booked != SUCCESS:
            entry = Entry(number, row.task_id, "no fault", SUCCESS, booked)
            findings.disturbed_controls.append(entry)


def check_ledger(
    number: int,
    expected: Iterable[Cell],
    candidate: Mapping[str, Json],
    findings: Findings,
) -> None:
    """Compare the ledger that the report shows with what was injected."""
    wanted = Counter((c.owner, c.cause) for c in expected if c != SUCCESS)
    shown = Counter({(e["owner"], e["cause"]): e["count"] for e in candidate["ledger"]})
    for owner, cause in sorted((wanted | shown).keys()):
        there, due = shown[owner, cause], wanted[owner, cause]
        if there != due:
            findings.contradictions.append(
                f"round {number}: the ledger counts {there} of {owner} {cause}, "
                f"and {due} were injected"
            )


def _serving_entry(
    number: int, hit: ServingHit, row: TaskRow, endpoint: DrillEndpoint
) -> Entry:
    fault = hit.fault
    times = endpoint.injected[hit.task_id]
    problem = ""
    if fault.attempts is not None and times != fault.attempts:
        problem = f"{times} attempts met the fault, {fault.attempts} were planned"
    elif fault.attempts is not None and row.attempts - row.requests != times:
        problem = f"{row.attempts} attempts are recorded for {row.requests} requests"
    elif times > 1 and (fault.cell in _ASKED_ONCE or fault.cell.owner == "candidate"):
        problem = f"the request was sent {times} times"
    elif fault.mark is not None and not getattr(row, fault.mark):
        problem = f"{fault.mark} is not counted"
    return Entry(number, hit.task_id, fault.name, fault.cell, cell_of(row), problem)


def _oracle_entry(
    number: int,
    hit: OracleHit,
    by_task: Mapping[str, TaskRow],
    record: OracleRecord,
) -> Entry:
    row = by_task[hit.task_id]
    problem = ""
    if hit.fault.loses_a_change and hit.place.call is not None:
        calls = record.calls_from(hit.task_id, hit.place.call)
        if calls != 1:
            problem = f"the oracle was called {calls} times at and after the lost reply"
        elif row.assertions_passed is not None:
            problem = "assertions were judged after an unknown commit"
    cell, name = hit.fault.cell, hit.fault.name
    return Entry(number, hit.task_id, name, cell, cell_of(row), problem)
