"""Which record of each run a comparison uses: the run's own, or the one asked for.

Nothing picks the best. What was used, whether it was asked for, and which others there
are, is part of every answer and of every refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import FairtrialError, UsageError, Violation
from harness.evaluations.record import RECORD_FILE
from harness.evaluations.stored import StoredRecord, records_of_run

_SIGN = "="


@dataclass(frozen=True, slots=True)
class Selected:
    """The record of one run that is used."""

    run: str
    """The name of the run's folder."""
    record: StoredRecord
    chosen: bool
    """Whether `--use` asked for it."""
    others: tuple[StoredRecord, ...]


def select_records(runs: Sequence[Path], use: Sequence[str]) -> list[Selected]:
    """Return the record to use of each run.

    Raises UsageError with everything that is wrong with runs and choices.
    """
    problems: list[Violation] = []
    names = [_name(run) for run in runs]
    problems += _repeated(runs)
    choices = _choices(use, names, problems)
    found = [
        _select(name, run, choices.get(name), problems)
        for name, run in zip(names, runs, strict=True)
    ]
    if problems:
        raise UsageError(
            problems[0].code, problems[0].problem, violations=tuple(problems)
        )
    return [each for each in found if each is not None]


def _name(run: Path) -> str:
    return run.resolve().name


def _repeated(runs: Sequence[Path]) -> list[Violation]:
    problems = []
    folders = {run.resolve() for run in runs}
    for name, count in Counter(map(_name, runs)).items():
        others = sum(folder.name == name for folder in folders)
        if others > 1:
            problems.append(
                _problem(
                    "RUN",
                    f"{count} runs are called {name!r}",
                    "folders with names that name one run each",
                    "rename one of the folders",
                )
            )
        elif count > 1:
            problems.append(
                _problem(
                    "RUN",
                    f"the folder {name!r} is named {count} times",
                    "folders of different runs",
                    "name each folder once",
                )
            )
    return problems


def _choices(
    use: Sequence[str], names: Sequence[str], problems: list[Violation]
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for text in use:
        run, sign, record = text.partition(_SIGN)
        where = f"--use {text}"
        if not (run and sign and record):
            problems.append(_problem(where, "this names no record", "RUN=RECORD"))
        elif run not in names:
            problems.append(
                _problem(where, f"no run is called {run!r}", _listed(names))
            )
        elif run in chosen:
            problems.append(_problem(where, f"{run!r} has a record already", "one"))
        else:
            chosen[run] = record
    return chosen


def _select(
    name: str, run: Path, wanted: str | None, problems: list[Violation]
) -> Selected | None:
    if not (run / RECORD_FILE).is_file():
        expected = f"a folder with {RECORD_FILE}: what a finished evaluation leaves"
        problems.append(_problem(str(run), "there is no evaluation here", expected))
        return None
    try:
        records = records_of_run(run)
    except FairtrialError as error:
        problems.extend(error.violations)
        return None
    exist = _listed([f"{r.record_id} ({r.payload['status']})" for r in records])
    where = name if wanted is None else f"--use {name}={wanted}"
    found = [r for r in records if wanted in (None, r.record_id)][:1]
    if not found:
        problems.append(_problem(where, f"{name} has no record {wanted}", exist))
        return None
    (record,) = found
    if not record.is_completed:
        problems.append(
            _problem(
                where,
                f"the evaluation {record.record_id} of {name} did not come to its end",
                f"a completed one of: {exist}",
                f"finish it, or choose another one with --use {name}=RECORD",
            )
        )
        return None
    others = tuple(each for each in records if each is not record)
    return Selected(name, record, wanted is not None, others)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _problem(where: str, problem: str, expected: str, recovery: str = "") -> Violation:
    return Violation(
        "eval_cli_invalid",
        where,
        problem,
        expected,
        "",
        recovery or "name one of those that exist",
    )
