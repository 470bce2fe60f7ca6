"""One candidate of one record: what a comparison holds against another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.canonical import Json
from harness.evaluations.conditions import UNKNOWN
from harness.evaluations.stored import StoredRecord

NO_METRIC = "the record has no such metric"


@dataclass(frozen=True, slots=True)
class Entry:
    """A subject of a record under the name that the comparison uses."""

    run: str
    """The name of the run's folder."""
    name: str
    """The run's, with the subject's where the record has several candidates."""
    record: StoredRecord
    subject: Mapping[str, Json]

    @property
    def groups(self) -> dict[str, Mapping[str, Json]]:
        """The protocol fields by group, the subject's own in their place."""
        shared: Mapping[str, Json] = self.record.payload["protocol"]["fields"]
        return {**shared, **self.subject["protocol"]}

    @property
    def protocol_version(self) -> str:
        """The version of the protocol's form."""
        return str(self.record.payload["protocol"]["version"])

    @property
    def metric(self) -> str:
        """The primary metric."""
        return str(self.record.payload["primary_metric"]["name"])

    @property
    def figure(self) -> Mapping[str, Json]:
        """The primary metric's `value`, `numerator`, `denominator` and `reason`."""
        figures: Mapping[str, Json] = self.subject["metrics"]
        return figures.get(self.metric) or {"value": None, "reason": NO_METRIC}

    @property
    def score(self) -> float | int | None:
        """What the entry is ranked by; None: it is not scored."""
        if self.subject.get("withheld") is not None:
            return None
        value: float | int | None = self.figure["value"]
        return value

    @property
    def not_scored(self) -> str | None:
        """Why the entry has no score; None where it has one."""
        if self.score is not None:
            return None
        return str(
            self.subject.get("withheld")
            or self.figure.get("reason")
            or "the metric has no value"
        )

    @property
    def conditions(self) -> dict[str, Mapping[str, Json]]:
        """Sets of values by condition, decoding as applied among them."""
        found: dict[str, Mapping[str, Json]] = dict(self.subject["conditions"])
        for name, value in (self.subject["decoding"].get("applied") or {}).items():
            mixed = isinstance(value, dict) and set(value) == {"mixed"}
            values = value["mixed"] if mixed else [value]
            found[f"applied.{name}"] = {"values": values, "mixed": mixed}
        return found

    def values_of(self, condition: str) -> list[Json]:
        """Return the values of a condition, unknown where it is not stated."""
        member = self.conditions.get(condition)
        return [UNKNOWN] if member is None else list(member["values"])


def candidates_of(run: str, record: StoredRecord) -> Iterator[Entry]:
    """Yield the candidates of a record; comparators are shown and never ranked."""
    found = [each for each in record.payload["subjects"] if each["role"] == "candidate"]
    for subject in found:
        name = run if len(found) == 1 else f"{run}/{subject['name']}"
        yield Entry(run, name, record, subject)
