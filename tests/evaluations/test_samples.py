"""Values of rows, so that two evaluations can be paired."""

import json
from fractions import Fraction

import pytest

from harness.errors import EvidenceError
from harness.evaluations.contracts import metric_fields, scorer_versions
from harness.evaluations.samples import NoRowValues, RowValues, row_values
from tests.evaluations.records import (
    entry,
    protocol,
    subject,
    verdict_lines,
    with_samples,
    written,
)

FILE = "sample_scores.jsonl"
RIGHT = verdict_lines({"r1": True})


def of_contract(folder, contract, task, metric, lines, name=FILE):
    """Write a record of a contract with its scores row by row; return its entry."""
    text = (
        lines
        if isinstance(lines, str)
        else "".join(json.dumps(x) + "\n" for x in lines)
    )
    with_samples(
        folder,
        text,
        name,
        task=task,
        metric=metric,
        scorer=scorer_versions(contract),
        protocol=protocol(metric=metric_fields(contract, metric)),
    )
    return entry(folder)


def test_verdicts_of_rows_are_read(tmp_path):
    folder = with_samples(tmp_path / "run", verdict_lines({"r1": True, "r2": False}))

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


def turn(number, repeat, said, *, missing=False):
    """A turn with three recorded actions of which `said` names some."""
    return {
        "conversation_id": "c",
        "turn": number,
        "repeat": repeat,
        "gt_actions": ["ls", "cat", "grep"],
        "model_actions": said,
        "score": round(len(said) / 3, 4),
        **({"missing": True} if missing else {}),
    }


def turns(folder, metric, rows):
    text = json.dumps({"score": 0.5, "per_turn": rows})
    return row_values(
        of_contract(
            folder, "mlperf-agentic", "mlperf-agentic", metric, text, "scores.json"
        )
    ).by_row


@pytest.mark.parametrize(
    ("metric", "first"), [("score", Fraction(1, 2)), ("answered_only_score", 1)]
)
def test_repeats_of_a_turn_are_one_pair(tmp_path, metric, first):
    whole = ["ls", "cat", "grep"]
    rows = [turn(2, 1, whole), turn(2, 2, [], missing=True), turn(4, 1, whole[:1])]

    assert turns(tmp_path / "run", metric, rows) == {
        '["c",2]': first,
        '["c",4]': Fraction(1, 3),
    }


def test_repeats_are_averaged_before_anything_is_rounded(tmp_path):
    thirds = [turn(2, 1, ["ls"]), turn(2, 2, ["ls", "cat"])]

    assert turns(tmp_path / "run", "score", thirds) == {'["c",2]': Fraction(1, 2)}


def test_turn_of_a_workflow_is_right_or_not(tmp_path):
    rows = [
        {
            "conversation_id": "c",
            "turn": n,
            "repeat": 1,
            "gt_intents": ["A1", "B2"],
            "model_intent": intent,
            "score": float(intent == "B2"),
        }
        for n, intent in ((2, "B2"), (4, None))
    ]

    assert turns(tmp_path / "run", "score", rows) == {'["c",2]': 1, '["c",4]': 0}


def test_record_without_scores_of_rows_says_so(tmp_path):
    named = written(tmp_path / "named", subject(samples=FILE))
    unnamed = written(tmp_path / "unnamed")

    assert isinstance(row_values(entry(named)), NoRowValues)
    assert isinstance(row_values(entry(unnamed)), NoRowValues)


def test_file_that_is_not_the_records_is_refused(tmp_path):
    folder = with_samples(
        tmp_path / "run", RIGHT, artifacts={FILE: "sha256:" + "0" * 64}
    )

    with pytest.raises(EvidenceError, match="not the one that its record names"):
        row_values(entry(folder))


@pytest.mark.parametrize("name", ["../other.jsonl", "/etc/hostname", "a/../b"])
def test_file_outside_of_the_folder_is_not_read(tmp_path, name):
    folder = tmp_path / "run"
    written(folder, subject(samples=name), artifacts={name: "sha256:" + "0" * 64})

    assert row_values(entry(folder)) == NoRowValues(
        f"{name} is not in the record's folder"
    )


def test_file_without_a_hash_in_the_record_is_not_believed(tmp_path):
    folder = with_samples(tmp_path / "run", RIGHT, artifacts={})

    assert row_values(entry(folder)) == NoRowValues(f"the record has no hash of {FILE}")


def test_rows_of_a_contract_that_is_not_known_are_not_paired(tmp_path):
    scorer = {"contract": "other", "metric_version": "1"}
    folder = with_samples(tmp_path / "run", RIGHT, scorer=scorer)

    found = row_values(entry(folder))

    assert found == NoRowValues("rows of the contract 'other' are not known here")
