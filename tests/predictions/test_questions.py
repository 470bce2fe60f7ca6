"""Rows of every contract as questions, and broken ones told all at once."""

import json

import pytest

from harness.errors import EvidenceError
from harness.predictions.questions import Question, read_questions

LABEL = {"id": "a", "input": "text", "gold": "label"}


@pytest.fixture
def write(tmp_path):
    def lines(*rows):
        path = tmp_path / "rows.jsonl"
        text = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_bytes("".join(f"{line}\n" for line in text).encode())
        return path

    return lines


def problems(path, contract="classification"):
    with pytest.raises(EvidenceError) as refused:
        read_questions(path, contract)
    return [(v.where, v.actual) for v in refused.value.violations]


def test_rows_keep_their_order_and_other_members_are_ignored(write):
    path = write({**LABEL, "more": 1}, {**LABEL, "id": "b"})

    assert read_questions(path, "classification") == [
        Question("a", "text", "label"),
        Question("b", "text", "label"),
    ]


def test_input_that_is_no_text_becomes_canonical_json():
    assert Question("a", {"b": 1, "a": "ü"}, "x").input_text == '{"a":"ü","b":1}'


def test_every_broken_row_is_told(write):
    path = write(
        "{",
        [],
        {"id": "a"},
        {**LABEL, "id": ""},
        LABEL,
        LABEL,
        {**LABEL, "id": "c", "gold": {}},
        "",
    )

    found = problems(path)

    assert [where for where, _ in found] == [
        f"rows.jsonl:{n}" for n in (1, 2, 3, 4, 6, 7, 8)
    ]
    assert found[2][1] == "no input, gold"
    assert found[5][1] == "gold is a JSON object, not str"


def test_gold_of_records_is_an_object(write):
    path = write(LABEL)

    assert problems(path, "json-records") == [
        ("rows.jsonl:1", "gold is a JSON str, not object")
    ]


def test_byte_order_mark_is_called_by_its_name(write):
    (found,) = problems(write("\ufeff" + json.dumps(LABEL)))

    assert found[0] == "rows.jsonl:1"
    assert "a byte order mark" in found[1]


def test_repeated_key_is_refused(write):
    (found,) = problems(write('{"id":"a","id":"b","input":"","gold":"x"}'))

    assert found[0] == "rows.jsonl:1"


def test_empty_manifest_is_refused(write):
    assert problems(write()) == [("rows.jsonl", "no line")]


def test_action_ir_manifest_is_read_as_its_generator_reads_it(write):
    row = {
        "schema_version": "barun-sft-example-v1",
        "id": "m",
        "prompt": "ask",
        "target": "gold",
    }

    assert read_questions(write(row), "action-ir") == [Question("m", "ask", "gold")]
    with pytest.raises(EvidenceError, match="unknown fields"):
        read_questions(write({**row, "more": 1}), "action-ir")


def test_text_that_no_request_can_hold_is_refused(write):
    row = {
        "schema_version": "barun-sft-example-v1",
        "id": "m",
        "prompt": "\ud800",
        "target": "gold",
    }

    assert problems(write(row), "action-ir") == [
        ("rows.jsonl:1", "unpaired surrogates")
    ]


@pytest.mark.parametrize("contract", ["classification", "json-records"])
@pytest.mark.parametrize(
    "broken",
    [
        {"id": "\ud800"},
        {"input": "x\udfff"},
        {"input": {"\ud800": 1}},
        {"gold": "\ud800"},
    ],
)
def test_text_that_no_record_can_hold_is_refused(write, contract, broken):
    if contract == "json-records" and "gold" in broken:
        broken = {"gold": {"name": "\ud800"}}
    gold = "label" if contract == "classification" else {}

    path = write({**LABEL, "gold": gold, **broken})

    assert problems(path, contract) == [("rows.jsonl:1", "unpaired surrogates")]


def test_escaped_pair_of_surrogates_is_one_character(write):
    path = write({**LABEL, "input": "\U0001f600"})

    assert read_questions(path, "classification")[0].input == "\U0001f600"
