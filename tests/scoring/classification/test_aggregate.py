"""Counts, accuracy and macro F1 of classification."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.scoring.answers import AnswerRow
from harness.scoring.classification.aggregate import LabelAggregator
from harness.scoring.classification.label import Vocabulary, score_label

VOCABULARY = Vocabulary(["a", "b", "c"])
GOLD = st.sampled_from(["a", "b", "A", "d"])
ANSWERS = st.none() | st.sampled_from(["a", "b", "c", "d", "nope", " B "])


def aggregate(rows):
    aggregator = LabelAggregator()
    for number, (gold, raw) in enumerate(rows):
        row = AnswerRow(f"r{number}", gold, raw, "stop")
        aggregator.add(row, score_label(raw, gold, VOCABULARY))
    return aggregator.result()


def test_no_rows_have_no_shares():
    metrics = aggregate([])["metrics"]

    assert (metrics["accuracy"], metrics["macro_f1"]) == (None, None)
    assert metrics["invalid_predictions"] == metrics["inference_failures"] == 0


def test_classes_are_those_of_gold():
    found = aggregate([("a", "c"), ("A", "a")])

    assert found["counts"]["classes"] == {"a": {"tp": 1, "fp": 0, "fn": 1}}


def test_answer_that_names_no_label_is_a_miss_and_no_false_alarm():
    found = aggregate([("a", "nope"), ("b", None)])

    assert found["counts"]["classes"] == {
        "a": {"tp": 0, "fp": 0, "fn": 1},
        "b": {"tp": 0, "fp": 0, "fn": 1},
    }
    assert found["metrics"]["macro_f1"] == 0.0


def test_invalid_and_failed_are_two_counts():
    metrics = aggregate([("a", "nope"), ("a", None), ("a", 5)])["metrics"]

    assert metrics["invalid_predictions"] == 2
    assert metrics["inference_failures"] == 1


def test_metric_of_another_task_is_refused():
    with pytest.raises(UsageError):
        LabelAggregator("parseable_rate")


@given(st.lists(st.tuples(GOLD, ANSWERS), min_size=1))
def test_macro_f1_is_the_exact_mean_and_order_is_nothing(rows):
    found = aggregate(rows)
    classes = found["counts"]["classes"].values()
    parts = [
        Fraction(2 * c["tp"], 2 * c["tp"] + c["fp"] + c["fn"]) if c["tp"] else 0
        for c in classes
    ]

    mean = float(sum(parts, Fraction()) / len(parts))
    assert found["metrics"]["macro_f1"] == mean
    assert aggregate(rows[::-1]) == found


@given(st.lists(st.tuples(GOLD, ANSWERS)))
def test_rows_are_all_hits_or_misses(rows):
    found = aggregate(rows)

    total = sum(c["tp"] + c["fn"] for c in found["counts"]["classes"].values())
    assert total == len(rows)
    assert found["counts"]["correct"] == sum(
        c["tp"] for c in found["counts"]["classes"].values()
    )
