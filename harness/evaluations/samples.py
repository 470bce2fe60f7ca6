"""What each row of an evaluation came to, so that two evaluations can be paired.

A row's value is 0 or 1 where the metric is a share of rows. Where the metric has no
value of one row, the nearest verdict that has one is used and named. Trials of one task
and repeats of one turn are averaged first: they are not separate pairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Final

from harness.canonical import Json, canonical_json, hash_file
from harness.errors import EvidenceError
from harness.evaluations.entry import Entry
from harness.evidence.task_table import read_task_rows
from harness.predictions.json_lines import read_rows
from harness.regular_file import read_regular_file
from harness.scoring.mlperf_agentic.coding import overlap

_Value = Callable[[Mapping[str, Json]], bool | Fraction]


@dataclass(frozen=True, slots=True)
class RowValues:
    """Values by row."""

    by_row: Mapping[str, Fraction]
    measure: str
    """What the values are of."""


@dataclass(frozen=True, slots=True)
class NoRowValues:
    """Why there are none."""

    reason: str


def row_values(entry: Entry) -> RowValues | NoRowValues:
    """Read what each row of an entry came to.

    Raises EvidenceError where the file of rows is not the one that the record names.
    """
    name = entry.subject.get("samples")
    if not isinstance(name, str):
        return NoRowValues("the record names no file of scores row by row")
    stated = entry.record.payload["artifacts"].get(name)
    if stated is None:
        return NoRowValues(f"the record has no hash of {name}")
    path = entry.record.folder / name
    inside = not PurePath(name).is_absolute() and ".." not in PurePath(name).parts
    if not inside or not path.is_file():
        return NoRowValues(f"{name} is not in the record's folder")
    _require_own(path, str(stated))
    contract = str(entry.record.payload["scorer"]["contract"])
    if contract in ("executable", "trace"):
        return _episodes(path, str(entry.subject["name"]))
    if contract == "mlperf-agentic":
        return _turns(path, entry.metric)
    if contract not in _BY_CONTRACT:
        return NoRowValues(f"rows of the contract {contract!r} are not known here")
    metric, value = _measured(contract, entry.metric)
    identity = "sample_id" if contract == "action-ir" else "id"
    return RowValues(
        {str(row[identity]): Fraction(value(row)) for row in read_rows(path)}, metric
    )


def _require_own(path: Path, stated: str) -> None:
    actual = hash_file(path)
    if actual != stated:
        raise EvidenceError(
            "eval_evidence_invalid",
            "a file of scores is not the one that its record names",
            where=str(path),
            expected=stated,
            actual=actual,
            recovery="bring back an intact copy of the folder",
        )


def _measured(contract: str, metric: str) -> tuple[str, _Value]:
    values = _BY_CONTRACT[contract]
    if metric in values:
        return metric, values[metric]
    nearest = next(iter(values))
    return f"{nearest} (the nearest that a row has; {metric} has none)", values[nearest]


def _flag(name: str) -> _Value:
    return lambda row: bool(row[name])


def _fields_right(row: Mapping[str, Json]) -> Fraction:
    fields = row["fields"]
    return Fraction(sum(fields.values()), len(fields)) if fields else Fraction(0)


def _same_decision(row: Mapping[str, Json]) -> bool:
    predicted = row["prediction"]
    return bool(predicted) and predicted["decision"] == row["gold"]["decision"]


_BY_CONTRACT: Final[Mapping[str, Mapping[str, _Value]]] = {
    "action-ir": {
        "policy_safe_executable_success": _flag("policy_safe_executable_success"),
        "ast_exact_match": _flag("ast_exact"),
        "parse_valid": _flag("parse_valid"),
        "schema_valid": _flag("schema_valid"),
        "decision_accuracy": _same_decision,
    },
    "json-records": {
        "whole_record_accuracy": _flag("record"),
        "parseable_rate": _flag("parseable"),
        "schema_valid_rate": _flag("schema_valid"),
        "mean_field_accuracy": _fields_right,
    },
    "classification": {"accuracy": _flag("correct")},
}
"""The value of a row by contract and metric; the first stands in for the rest."""


class _Means:
    """Averages the values of everything that has one name."""

    def __init__(self) -> None:
        self._sums: dict[str, list[Fraction | int]] = {}

    def add(self, name: str, value: bool | Fraction) -> None:
        sums = self._sums.setdefault(name, [Fraction(0), 0])
        sums[0] += Fraction(value)
        sums[1] += 1

    def result(self) -> dict[str, Fraction]:
        return {name: Fraction(total, n) for name, (total, n) in self._sums.items()}


def _episodes(path: Path, alias: str) -> RowValues:
    means = _Means()
    for row in read_task_rows(path):
        if row.candidate_alias == alias:
            means.add(row.task_id, row.task_success)
    return RowValues(means.result(), "task success over the trials of a task")


def _turns(path: Path, metric: str) -> RowValues:
    means = _Means()
    for turn in _score_rows(path):
        if metric == "score" or not turn.get("missing"):
            name = canonical_json([turn["conversation_id"], turn["turn"]])
            means.add(name, _turn_score(turn))
    return RowValues(means.result(), "score over the repeats of a turn")


def _turn_score(turn: Mapping[str, Json]) -> bool | Fraction:
    """Return the score of a turn as it was before the file rounded it."""
    if "gt_intents" in turn:
        return turn["model_intent"] in turn["gt_intents"]
    shared = overlap(turn["gt_actions"], turn["model_actions"])
    return Fraction(shared.intersection, shared.union)


def _score_rows(path: Path) -> Iterator[Mapping[str, Json]]:
    # The file has the original's text, so it is read as the original reads it.
    yield from json.loads(read_regular_file(path))["per_turn"]
