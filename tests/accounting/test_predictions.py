"""Scores of predictions made again from what a predict run kept."""

import json

import pytest

from harness.accounting.again import NotRescorableError, score_again
from harness.cli.main import main
from harness.evaluations.pairs import Label, judge
from harness.evaluations.samples import row_values
from harness.evaluations.stored import read_stored
from tests.evaluations.records import entry
from tests.predict.asking import (
    CONTRACTS,
    Workspace,
    embeddings,
    right_or_vectors,
    server,
)
from tests.servers import completion

WRONG = "row 1 of nothing"


def asked_of(received):
    return received.json()["messages"][-1]["content"]


def right_but_once(received):
    """Answer rightly, save for the rows with a 1 in their text."""
    if not received.path.endswith("/embeddings") and "1" in asked_of(received):
        return completion(WRONG)
    return right_or_vectors(received)


@pytest.fixture(params=CONTRACTS)
def predicted(request, tmp_path):
    """A finished predict run of each contract, with right and wrong answers."""
    with server(right_but_once) as running:
        space = Workspace(tmp_path, request.param, url=running.url)
        space.predict()
    return space


def test_present_scorer_gives_the_recorded_metrics(predicted):
    record = read_stored(predicted.output)

    (subject,) = record.payload["subjects"]
    again = score_again(record, [])[subject["name"]]
    assert {n: m.as_payload() for n, m in again.items()} == subject["metrics"]


def test_rows_of_a_predict_run_can_be_paired(predicted):
    found = entry(predicted.output)

    values = row_values(found).by_row
    assert len(values) == found.figure["denominator"]
    assert sum(values.values()) == found.figure["numerator"]


def test_score_of_the_predictions_agrees_in_all_that_files_tell(predicted, tmp_path):
    output, contract = predicted.output, predicted.contract
    words = {
        "action-ir": ["--manifest", output / "manifest.jsonl", "--predictions"],
        "json-records": ["--schema", output / "declaration.json", "--rows"],
        "classification": ["--labels", output / "declaration.json", "--rows"],
    }[contract]
    words = [*map(str, words), str(output / "predictions.jsonl")]
    assert main(["score", contract, *words, "--output", str(tmp_path / "s")]) == 0

    pair = judge(entry(output), entry(tmp_path / "s"))

    assert pair.label is Label.CROSS_RUNTIME
    assert pair.left.score == pair.right.score


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("predictions.jsonl", "raw_output_missing"),
        ("manifest.jsonl", "gold_missing"),
        ("declaration.json", "contract_hash_mismatch"),
    ],
)
@pytest.mark.parametrize("predicted", ["classification"], indirect=True)
@pytest.mark.parametrize("change", ["lost", "changed"])
def test_what_is_lost_or_changed_has_its_reason(predicted, file, code, change):
    path = predicted.output / file
    path.unlink()
    if change == "changed":
        path.write_text(json.dumps(["other"]))

    with pytest.raises(NotRescorableError) as refused:
        score_again(read_stored(predicted.output), [])

    assert [each.code for each in refused.value.obstacles] == [code]


def test_comparators_are_scored_again_too(tmp_path):
    with server(right_but_once) as running:
        space = Workspace(tmp_path, url=running.url)
        space.document["engines"]["vectors"] = embeddings(running.url)
        space.document["comparators"] = [
            {"name": "near", "kind": "embedding", "engine": "vectors", "train": None}
        ]
        space.predict()
    record = read_stored(space.output)

    again = score_again(record, [])
    assert {each["name"] for each in record.payload["subjects"]} == again.keys()
    assert again["near"]["accuracy"].value == 1.0
