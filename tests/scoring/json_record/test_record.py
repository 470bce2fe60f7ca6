"""One answer against gold: the order of evidence, and no input that is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.predictions.record_schema import compile_schema
from harness.scoring.json_record.equality import values_equal
from harness.scoring.json_record.record import field_names, score_record

SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "x-unordered": True},
            "note": {"type": "string"},
        },
        "required": ["name"],
    }
)
OPEN = compile_schema({"properties": {}})
GOLD = {"name": "Zoë", "tags": ["a", "b"], "more": 1}
RIGHT = '{"name": " Zoë ", "tags": ["b", "a"], "more": 1.0}'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), below, max_size=3)
    ),
    max_leaves=6,
)


def score(raw, gold=GOLD, schema=SCHEMA):
    return score_record(raw, gold, schema)


def test_fields_are_declared_properties_then_other_keys_of_gold():
    assert list(score(RIGHT).fields) == ["name", "tags", "note", "more"]


def test_field_that_neither_side_has_is_right():
    assert score(RIGHT).fields["note"]


def test_right_answer_is_right_as_a_whole():
    assert score(RIGHT).record


def test_answer_that_breaks_the_schema_gets_no_field():
    found = score('{"name": 5, "tags": ["a", "b"], "more": 1, "z": 0}')

    assert found.parseable
    assert not found.schema_valid
    assert not any(found.fields.values())
    assert found.extra_fields == ("z",)


def test_optional_field_that_gold_lacks_is_extra_and_wrong():
    found = score('{"name": "Zoë", "tags": ["a", "b"], "more": 1, "note": "n"}')

    assert found.extra_fields == ("note",)
    assert not found.fields["note"]
    assert not found.record


def test_extra_field_that_nobody_declares_spoils_only_the_whole():
    found = score('{"name": "Zoë", "tags": ["a", "b"], "more": 1, "z": 1}')

    assert all(found.fields.values())
    assert not found.record


@pytest.mark.parametrize("raw", ["[]", "7", "null", '"x"'])
def test_answer_that_is_no_object_may_be_valid_and_is_never_right(raw):
    found = score(raw, {}, OPEN)

    assert found.schema_valid
    assert found.extra_fields == ()
    assert not found.record


def test_no_output_is_failed_and_nothing_else():
    found = score(None)

    assert found.failed
    assert found.as_record() == {
        "failed": True,
        "parseable": False,
        "schema_valid": False,
        "fields": {},
        "record": False,
        "extra_fields": [],
    }


@pytest.mark.parametrize("raw", [5, 1.5, True, [], {"name": "Zoë"}, b"{}"])
def test_output_that_is_no_text_does_not_parse(raw):
    found = score(raw)

    assert not found.failed
    assert not found.parseable


def test_boolean_schema_of_a_member_marks_nothing():
    schema = compile_schema({"properties": {"a": True, "b": {"items": True}}})
    gold = {"a": {"x": [1]}, "b": [[1], {"x": 1}]}

    assert score(json.dumps(gold), gold, schema).record


@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), JSON)
def test_whole_record_means_that_both_are_equal(gold, answer):
    found = score(json.dumps(answer), gold, OPEN)

    assert found.record == (isinstance(answer, dict) and values_equal(gold, answer))


@given(st.text() | JSON, st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_every_input_has_a_score(raw, gold):
    found = score(raw, gold)

    assert found.failed == (raw is None)
    assert found.record <= found.schema_valid <= found.parseable
    assert list(found.fields) == (
        field_names(SCHEMA.document, gold) if found.parseable else []
    )
