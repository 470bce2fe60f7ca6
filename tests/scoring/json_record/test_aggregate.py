"""Counts and shares of JSON records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.predictions.record_schema import compile_schema
from harness.scoring.answers import AnswerRow
from harness.scoring.json_record.aggregate import RecordAggregator
from harness.scoring.json_record.record import score_record

SCHEMA = compile_schema({"type": "object", "properties": {"a": {"type": "integer"}}})


def aggregate(rows, schema=SCHEMA):
    aggregator = RecordAggregator(schema.document)
    for number, (gold, raw, reason) in enumerate(rows):
        row = AnswerRow(f"r{number}", gold, raw, reason)
        aggregator.add(row, score_record(raw, gold, schema))
    return aggregator.result()


def test_no_rows_have_no_shares():
    metrics = aggregate([])["metrics"]

    assert metrics["rows"] == 0
    assert metrics["field_accuracy"] == {"a": None}
    assert metrics["mean_field_accuracy"] is None
    assert metrics["whole_record_accuracy"] is None


def test_key_of_one_gold_is_wrong_where_other_gold_lacks_it():
    found = aggregate([({"b": 1}, '{"b": 1}', "stop"), ({}, "{}", "stop")])

    assert found["counts"]["fields"] == {"a": 2, "b": 1}
    assert found["counts"]["record"] == 2


def test_extra_keys_count_once_a_row():
    found = aggregate([({}, '{"x": 1, "y": 2}', "stop"), ({}, '{"a": "x"}', "stop")])

    assert found["metrics"]["records_with_extra_fields"] == 2


def test_cut_answer_is_counted_and_scored_as_it_stands():
    found = aggregate([({"a": 1}, '{"a": 1}', "length"), ({"a": 1}, '{"a"', "length")])

    assert found["metrics"]["truncated"] == 2
    assert found["counts"]["record"] == 1


def test_output_that_is_no_text_is_told_apart_from_a_failure():
    found = aggregate([({}, 5, "stop"), ({}, None, None)])

    assert found["metrics"]["inference_failures"] == 1
    assert found["companions"]["outputs_not_text"] == 1


def test_schema_that_leads_nowhere_is_counted():
    schema = compile_schema({"properties": {"a": {"$ref": "#/nowhere"}}})

    found = aggregate([({"a": 1}, '{"a": 1}', "stop"), ({}, "{}", "stop")], schema)

    assert found["companions"]["schema_undecided"] == 1
    assert found["counts"]["schema_valid"] == 1


def test_metric_of_another_task_is_refused():
    with pytest.raises(UsageError):
        RecordAggregator(SCHEMA.document, "accuracy")


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2),
            st.sampled_from([None, "", "{}", '{"a": 1}', '{"b": 0, "a": 1}', "[]"]),
            st.sampled_from(["stop", "length", None]),
        )
    )
)
def test_mean_is_the_mean_of_the_shares_and_order_is_nothing(rows):
    found = aggregate(rows)
    shares = found["metrics"]["field_accuracy"].values()

    if rows:
        mean = sum(shares) / len(shares)
        assert found["metrics"]["mean_field_accuracy"] == pytest.approx(mean, abs=1e-12)
    assert aggregate(rows[::-1]) == found
