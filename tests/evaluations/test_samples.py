"""Values of rows, so that two evaluations can be paired."""

import json
from fractions import Fraction

import pytest

from harness.canonical import hash_file
from harness.errors import EvidenceError
from harness.evaluations.contracts import metric_fields, scorer_versions
from harness.evaluations.samples import NoRowValues, RowValues, row_values
from tests.evaluations.records import entry, protocol, subject, with_samples, written

FILE = "sample_scores.jsonl"


def of_contract(folder, contract, task, metric, lines, name=FILE):
    """Write a record of a contract with its scores row by row; return its entry."""
    written(
        folder,
        subject(samples=name),
        task=task,
        metric=metric,
        scorer=scorer_versions(contract),
        protocol=protocol(metric=metric_fields(contract, metric)),
    )
    text = (
        lines
        if isinstance(lines, str)
        else "".join(json.dumps(x) + "\n" for x in lines)
    )
    (folder / name).write_text(text)
    return entry(folder)


def test_verdicts_of_rows_are_read(tmp_path):
    folder = written(tmp_path / "run", subject(samples=FILE))
    with_samples(folder, {"r1": True, "r2": False})

    assert row_values(entry(folder)) == RowValues({"r1": 1, "r2": 0}, "accuracy")


def test_metric_without_a_value_of_a_row_says_what_stands_in(tmp_path):
    found = of_contract(
        tmp_path / "run",
        "classification",
        "classification",
        "macro_f1",
        [{"id": "r1", "correct": True}],
    )

    values = row_values(found)
    assert values.by_row == {"r1": 1}
    assert values.measure == (
        "accuracy (the nearest that a row has; macro_f1 has none)"
    )


def test_fields_of_a_record_are_averaged(tmp_path):
    lines = [
        {"id": "r1", "record": False, "fields": {"a": True, "b": False}},
        {"id": "r2", "record": False, "fields": {}},
    ]
    found = of_contract(
        tmp_path / "run", "json-records", "json", "mean_field_accuracy", lines
    )

    assert row_values(found).by_row == {"r1": Fraction(1, 2), "r2": 0}


def test_decisions_of_actions_are_compared(tmp_path):
    lines = [
        {"sample_id": "a", "gold": {"decision": "CALL"}, "prediction": None},
        {
            "sample_id": "b",
            "gold": {"decision": "CALL"},
            "prediction": {"decision": "CALL"},
        },
    ]
    found = of_contract(
        tmp_path / "run", "action-ir", "action-ir", "decision_accuracy", lines
    )

    assert row_values(found).by_row == {"a": 0, "b": 1}


TURNS = [
    {"conversation_id": "c", "turn": 2, "repeat": 1, "score": 1.0},
    {"conversation_id": "c", "turn": 2, "repeat": 2, "score": 0.0, "missing": True},
    {"conversation_id": "c", "turn": 4, "repeat": 1, "score": 0.5},
]


@pytest.mark.parametrize(
    ("metric", "first"), [("score", Fraction(1, 2)), ("answered_only_score", 1)]
)
def test_repeats_of_a_turn_are_one_pair(tmp_path, metric, first):
    text = json.dumps({"score": 0.5, "per_turn": TURNS})
    found = of_contract(
        tmp_path / "run",
        "mlperf-agentic",
        "mlperf-agentic",
        metric,
        text,
        "scores.json",
    )

    assert row_values(found).by_row == {'["c",2]': first, '["c",4]': Fraction(1, 2)}


def test_record_without_scores_of_rows_says_so(tmp_path):
    named = written(tmp_path / "named", subject(samples=FILE))
    unnamed = written(tmp_path / "unnamed")

    assert isinstance(row_values(entry(named)), NoRowValues)
    assert isinstance(row_values(entry(unnamed)), NoRowValues)


def test_file_that_is_not_the_records_is_refused(tmp_path):
    folder = tmp_path / "run"
    written(folder, subject(samples=FILE), artifacts={FILE: "sha256:" + "0" * 64})
    with_samples(folder, {"r1": True})

    with pytest.raises(EvidenceError, match="not the one that its record names"):
        row_values(entry(folder))


def test_file_of_the_record_is_taken(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with_samples(other, {"r1": True})
    folder = tmp_path / "run"
    written(folder, subject(samples=FILE), artifacts={FILE: hash_file(other / FILE)})
    with_samples(folder, {"r1": True})

    assert row_values(entry(folder)).by_row == {"r1": 1}


def test_rows_of_a_contract_that_is_not_known_are_not_paired(tmp_path):
    folder = tmp_path / "run"
    scorer = {"contract": "other", "metric_version": "1"}
    written(folder, subject(samples=FILE), scorer=scorer)
    with_samples(folder, {"r1": True})

    found = row_values(entry(folder))

    assert found == NoRowValues("rows of the contract 'other' are not known here")
