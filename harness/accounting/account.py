"""What became of published numbers when their scorer changed.

`rescored`: the present scorer was applied to what the run recorded. `unaffected`: that
gave the published number again, under the published version. `not_rescorable`: it could
not be applied, with every reason. `replicated`: it could not, and another run of the
model stands in its place; that is a new measurement and never a rescore. A change is
stated within one version of a metric only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Final

from harness.accounting.again import Figures, NotRescorableError, score_again
from harness.accounting.document import Published
from harness.errors import FairtrialError, UsageError, Violation
from harness.evaluations.contracts import TASK_OF_CONTRACT, scorer_versions
from harness.evaluations.record import MetricValue
from harness.evaluations.rescoring import Obstacle
from harness.evaluations.stored import StoredRecord, read_stored
from harness.scoring.answers import SELECTABLE

NOT_A_RESCORE: Final = (
    "A replication ran the model again; it is a new measurement and not a rescore."
)
DOES_NOT_FOLLOW: Final = (
    "the published number does not follow from this evidence under its own version"
)
_SUMMED: Final = Fraction(1, 10**12)
"""Figures without counts that are closer are one: such are floats that were summed."""


class Status(StrEnum):
    """What became of one number."""

    RESCORED = "rescored"
    NOT_RESCORABLE = "not_rescorable"
    UNAFFECTED = "unaffected"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class NewFigure:
    """A figure of the present, with the version of its metric."""

    metric: MetricValue
    version: str
    change: float | None
    """New minus old; None where the versions differ or there is no value."""


@dataclass(frozen=True, slots=True)
class Account:
    """One published number and what became of it."""

    published: Published
    status: Status
    new: NewFigure | None
    """What the present scorer gives; None where it could not be applied."""
    reasons: tuple[Obstacle, ...]
    replication: NewFigure | None
    note: str | None = None


def account(numbers: Sequence[Published]) -> list[Account]:
    """Account for every number; each run is scored once.

    Raises UsageError with all entries that name no party of their run, and all
    replications that cannot be read.
    """
    problems: list[Violation] = []
    found = [_Account(each, index, problems) for index, each in enumerate(numbers)]
    if problems:
        raise UsageError(
            problems[0].code, problems[0].problem, violations=tuple(problems)
        )
    known: dict[tuple[Path, tuple[Path, ...]], Figures | NotRescorableError] = {}
    return [each.result(known) for each in found]


class _Account:
    """One number while it is accounted for."""

    def __init__(
        self, published: Published, index: int, problems: list[Violation]
    ) -> None:
        self._published = published
        self._where = f"published[{index}]"
        self._problems = problems
        self._record: StoredRecord | None = None
        self._lack: Obstacle | None = None
        self._read()
        self._subject = self._named(self._record)
        self._replication = self._replicated()

    def _read(self) -> None:
        run = self._published.run
        if run is None:
            self._lack = Obstacle("raw_output_missing", "no run was kept")
            return
        try:
            self._record = read_stored(run)
        except FairtrialError as error:
            detail = f"{run.name}: {error.violations[0].problem}"
            self._lack = Obstacle("raw_output_missing", detail)

    def _named(self, record: StoredRecord | None) -> str | None:
        """Return the party of a record that the number is of."""
        if record is None:
            return None
        subjects = record.payload["subjects"]
        names = [str(each["name"]) for each in subjects]
        candidates = [
            str(each["name"]) for each in subjects if each["role"] == "candidate"
        ]
        wanted = self._published.subject
        if wanted is None and len(candidates) == 1:
            return candidates[0]
        if wanted in names or not names:
            return wanted
        self._problem(
            "subject", f"{record.folder.name} has {', '.join(names)}", str(wanted)
        )
        return None

    def _replicated(self) -> NewFigure | None:
        folder = self._published.replication
        if folder is None:
            return None
        try:
            record = read_stored(folder)
        except FairtrialError as error:
            self._problem("replication", "a folder with a record", str(error)[:200])
            return None
        name = self._named(record)
        subjects = {each["name"]: each for each in record.payload["subjects"]}
        figure = subjects.get(name, {"metrics": {}})["metrics"].get(
            self._published.metric
        )
        if figure is None or figure["value"] is None:
            reason = figure and figure.get("reason")
            self._problem(
                "replication",
                f"a run with a value of the metric {self._published.metric}",
                f"{folder.name}: {reason}" if reason else folder.name,
            )
            return None
        version = str(record.payload["scorer"]["metric_version"])
        value = MetricValue(
            figure["value"], figure.get("numerator"), figure.get("denominator")
        )
        return self._figure(value, version)

    def _problem(self, key: str, expected: str, actual: str) -> None:
        self._problems.append(
            Violation(
                "eval_cli_invalid",
                f"{self._where}.{key}",
                "an entry names nothing that is there",
                expected,
                actual,
                "correct the entry",
            )
        )

    def result(
        self,
        known: dict[tuple[Path, tuple[Path, ...]], Figures | NotRescorableError],
    ) -> Account:
        """Apply the present scorer, once for each run, and say what came of it."""
        if self._record is None:
            return self._refused([self._lack] if self._lack else [])
        key = (self._record.folder.resolve(), self._published.evidence)
        if key not in known:
            known[key] = _scored(self._record, self._published.evidence)
        figures = known[key]
        if isinstance(figures, NotRescorableError):
            return self._refused(figures.obstacles)
        contract = str(self._record.payload["scorer"]["contract"])
        metric = figures.get(self._subject or "", {}).get(self._published.metric)
        if metric is None:
            return self._refused([_no_metric(contract, self._published.metric)])
        version = str(scorer_versions(contract)["metric_version"])
        return self._rescored(self._figure(metric, version))

    def _rescored(self, new: NewFigure) -> Account:
        same_version = new.version == self._published.metric_version
        same = same_version and _is_same(self._published.value, new.metric)
        return Account(
            self._published,
            Status.UNAFFECTED if same else Status.RESCORED,
            new,
            (),
            self._replication,
            DOES_NOT_FOLLOW if same_version and not same else None,
        )

    def _refused(self, reasons: Sequence[Obstacle]) -> Account:
        replicated = self._replication is not None
        return Account(
            self._published,
            Status.REPLICATED if replicated else Status.NOT_RESCORABLE,
            None,
            tuple(reasons),
            self._replication,
        )

    def _figure(self, metric: MetricValue, version: str) -> NewFigure:
        comparable = version == self._published.metric_version
        change = None
        if comparable and metric.value is not None:
            change = metric.value - float(self._published.value)
        return NewFigure(metric, version, change)


def _scored(
    record: StoredRecord, evidence: Sequence[Path]
) -> Figures | NotRescorableError:
    try:
        return score_again(record, evidence)
    except NotRescorableError as error:
        return error


def _no_metric(contract: str, metric: str) -> Obstacle:
    if contract == "trace" and metric in SELECTABLE["executable"]:
        return Obstacle("trace_only_evidence")
    offered = ", ".join(SELECTABLE[TASK_OF_CONTRACT[contract]])
    return Obstacle(
        "scorer_version_gone", f"{contract} has no {metric} here; it has {offered}"
    )


def _is_same(published: Decimal, metric: MetricValue) -> bool:
    """Tell whether a figure is the published one to the digits that were given.

    Of a figure that stands just between two numbers both are roundings. A number
    without decimals was not rounded to any.
    """
    if metric.value is None:
        return False
    _, _, exponent = published.as_tuple()
    rounding = Fraction(0)
    if isinstance(exponent, int) and exponent < 0:
        rounding = Fraction(1, 2 * 10**-exponent)
    if metric.numerator is not None and metric.denominator:
        exact = Fraction(metric.numerator, metric.denominator)
        # The digits of a whole double may be further off than half of the last one.
        same = float(published) == metric.value
    else:
        exact = Fraction(metric.value)
        same = abs(exact - Fraction(published)) <= _SUMMED
    return same or abs(exact - Fraction(published)) <= rounding


def counts(accounts: Sequence[Account]) -> Mapping[str, int]:
    """Return how many numbers have each status."""
    return {
        status.value: sum(each.status is status for each in accounts)
        for status in Status
    }
