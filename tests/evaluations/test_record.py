"""A record states what it was given, under an id that follows from it."""

import pytest

from harness.errors import EngineError, UsageError
from harness.evaluations.form import problems_of
from harness.evaluations.record import LINEAGE, Holdout, Parent, build_record
from harness.evaluations.rescoring import OBSTACLES, Obstacle
from tests.evaluations.records import inputs, subject


def test_record_of_a_run_is_original():
    record = build_record(inputs())

    assert record["record_id"] == "original"
    assert record["status"] == "completed"
    assert record["primary_metric"] == {
        "name": "accuracy",
        "version": "1",
        "choices": ["accuracy", "macro_f1"],
    }


def test_metric_that_the_contract_does_not_have_is_refused_with_the_choices():
    with pytest.raises(UsageError, match="choose from accuracy, macro_f1"):
        build_record(inputs(metric="f1"))


def test_later_record_has_an_id_of_its_content_and_the_sentence_on_lineage():
    parent = Parent("original", "sha256:" + "0" * 64)
    record = build_record(inputs(parent=parent))
    other = build_record(inputs(subject(correct=1), parent=parent))

    assert record["parent"]["statement"] == LINEAGE
    assert record["record_id"].startswith("eval-")
    assert len(record["record_id"]) == len("eval-") + 12
    assert record["record_id"] != other["record_id"]


def test_id_can_be_fixed_by_less_than_the_content():
    parent = Parent("original", None)
    one, two = (
        build_record(inputs(subject(correct=n), parent=parent, identity={"a": 1}))
        for n in (1, 2)
    )

    assert one["record_id"] == two["record_id"]


def test_failed_evaluation_has_a_record_without_scores():
    error = EngineError("eval_engine_failed", "it broke", where="row 3")
    record = build_record(inputs(failure=error, subjects=()))

    assert record["status"] == "failed"
    assert record["error"]["code"] == "eval_engine_failed"
    assert record["subjects"] == []
    assert problems_of(record) == []


@pytest.mark.parametrize("code", OBSTACLES)
def test_every_reason_against_rescoring_is_stated(code):
    record = build_record(inputs(obstacles=[Obstacle(code)]))

    assert record["rescorable"] == {
        "rescorable": False,
        "reasons": [{"code": code, "detail": OBSTACLES[code]}],
    }


def test_holdout_says_how_often_it_was_used():
    record = build_record(inputs(holdout=Holdout("a" * 64, 2)))

    assert record["holdout"]["uses_before"] == 2


def test_counts_stand_beside_a_rate_and_not_beside_a_mean():
    record = build_record(inputs())

    assert record["subjects"][0]["metrics"]["accuracy"] == {
        "value": 0.75,
        "numerator": 3,
        "denominator": 4,
    }


def test_numbers_are_plain_in_protocol_fields():
    record = build_record(inputs())

    temperature = record["protocol"]["fields"]["decoding"]["temperature"]
    assert type(temperature) is int
