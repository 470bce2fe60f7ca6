"""From files to files under both contracts; nothing is left after a refusal."""

import hashlib
import json

import pytest

from harness.errors import EvidenceError, UsageError
from harness.predictions.answers import (
    gold_violations,
    read_answers,
    read_labels,
    read_schema,
    score_classification,
    score_json_records,
)
from harness.scoring.answers import AnswerRowError

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
}
RECORDS = [
    {"id": "r1", "gold": {"a": 1}, "raw": '{"a": 1.0}', "finish_reason": "stop"},
    {"id": "r2", "gold": {"a": 2}, "raw": None, "finish_reason": None},
    {"id": "r3", "gold": {"a": 3}, "raw": '{"a": 3, "\\ud800": 0}'},
]
LABELS = ["yes", "no"]
ANSWERS = [
    {"id": "r1", "gold": "yes", "raw": " YES", "finish_reason": "stop"},
    {"id": "r2", "gold": "no", "raw": "no\ud800", "finish_reason": "length"},
]


@pytest.fixture
def write(tmp_path):
    def write(declared, rows):
        (tmp_path / "declared.json").write_text(json.dumps(declared))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "rows.jsonl").write_text(lines)
        return tmp_path / "declared.json", tmp_path / "rows.jsonl", tmp_path / "out"

    return write


def lines_of(output):
    data = (output / "sample_scores.jsonl").read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def test_records_are_scored_in_the_order_of_the_rows(write):
    *files, output = write(SCHEMA, RECORDS)

    found = score_json_records(*files, output)

    lines = lines_of(output)
    assert [line["id"] for line in lines] == ["r1", "r2", "r3"]
    assert [line["record"] for line in lines] == [True, False, False]
    assert lines[2]["extra_fields"] == ["\ud800"]
    assert found.aggregate["counts"]["record"] == 1


def test_labels_are_scored(write):
    *files, output = write(LABELS, ANSWERS)

    score_classification(*files, output, metric="macro_f1")

    aggregate = json.loads((output / "aggregate.json").read_bytes())
    assert lines_of(output)[1]["pred"] == "no\ud800"
    assert aggregate["primary"] == {"metric": "macro_f1", "value": 0.5}
    assert aggregate["metrics"]["truncated"] == 1


def test_hashes_are_those_of_the_files(write):
    *files, output = write(SCHEMA, RECORDS)

    found = score_json_records(*files, output)

    def sha256(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    assert found.aggregate_sha256 == sha256(output / "aggregate.json")
    assert found.sample_scores_sha256 == sha256(output / "sample_scores.jsonl")
    assert (found.declaration_sha256, found.rows_sha256) == tuple(map(sha256, files))


def test_bytes_are_these_on_every_python(write):
    *files, output = write(SCHEMA, RECORDS)

    found = score_json_records(*files, output)

    assert found.sample_scores_sha256 == (
        "d2d7af74c10d9f4c444cdfdbe0994dc94a8763ba090521a43d7c0f9dab774304"
    )
    assert found.aggregate_sha256 == (
        "693be597063475a1da44d927f34a6f91de3eae00c5a239bc277f9129e73b0406"
    )


def test_no_rows_make_an_aggregate(write):
    *files, output = write(SCHEMA, [])

    found = score_json_records(*files, output)

    assert found.aggregate["metrics"]["rows"] == 0
    assert (output / "sample_scores.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    "schema",
    [
        {},
        [],
        True,
        {"type": ["object", "null"]},
        {"$ref": "#"},
        {"type": "array"},
        {"type": "object", "required": 5},
    ],
)
def test_schema_of_no_record_is_refused(write, schema):
    *files, output = write(schema, RECORDS)

    with pytest.raises(UsageError):
        score_json_records(*files, output)

    assert not output.exists()


@pytest.mark.parametrize(
    "text", ["", "{", '{"type": "object", "type": "array"}', '{"minLength": NaN}']
)
def test_schema_that_is_no_strict_json_is_refused(write, text):
    schema, *_ = write(SCHEMA, [])
    schema.write_text(text)

    with pytest.raises(UsageError, match="cannot be used"):
        read_schema(schema)


def test_schema_that_is_not_utf8_is_refused(write):
    schema, *_ = write(SCHEMA, [])
    schema.write_bytes(b'{"type": "\xff"}')

    with pytest.raises(UsageError, match="invalid_utf8"):
        read_schema(schema)


@pytest.mark.parametrize("labels", [{}, [], ["a", 5], "a", None, ["a", "\ud800"]])
def test_labels_that_are_no_list_of_strings_are_refused(write, labels):
    path, *_ = write(labels, [])

    with pytest.raises(UsageError, match="JSON array of strings"):
        read_labels(path)


@pytest.mark.parametrize(
    "row",
    [
        {"id": "r1", "gold": {}, "raw": None},
        {"id": "", "gold": {}, "raw": None},
        {"id": "x", "gold": [], "raw": None},
        {"id": "x", "gold": {}},
        {"id": "x", "raw": None},
        {"id": "x", "gold": {}, "raw": None, "finish_reason": []},
    ],
)
def test_row_that_cannot_be_scored_is_named(write, row):
    *files, output = write(SCHEMA, [*RECORDS, row])

    with pytest.raises(AnswerRowError) as refused:
        score_json_records(*files, output)

    assert refused.value.violations[0].where == "rows.jsonl:4"
    assert not output.exists()


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"{\n", b"\xff\n", b"[" * 2000])
def test_broken_line_is_refused(write, line):
    schema, rows, output = write(SCHEMA, RECORDS)
    rows.write_bytes(rows.read_bytes() + line)

    with pytest.raises(EvidenceError):
        score_json_records(schema, rows, output)

    assert not output.exists()


def test_output_that_exists_is_left_alone(write):
    *files, output = write(SCHEMA, RECORDS)
    output.mkdir()

    with pytest.raises(UsageError):
        score_json_records(*files, output)

    assert list(output.iterdir()) == []


def test_metric_is_checked_before_anything_is_read(tmp_path):
    with pytest.raises(UsageError, match="not supported for the json task"):
        score_json_records(tmp_path, tmp_path, tmp_path, metric="accuracy")


def test_gold_that_breaks_the_schema_is_listed(write):
    broken = {"id": "r4", "gold": {"a": "x"}, "raw": None}
    schema, rows, _ = write(SCHEMA, [*RECORDS, broken])

    found = gold_violations(read_answers(rows, dict), read_schema(schema))

    assert list(found) == ["r4"]
