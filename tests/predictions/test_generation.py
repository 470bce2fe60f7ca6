"""Prediction lines, new files, and the generator's own reading of a manifest."""

import hashlib
import json

import pytest

from harness.errors import EvidenceError, SourceError, UsageError
from harness.predictions.digests import file_sha256
from harness.predictions.generation import (
    PredictionLine,
    membership_sha256,
    read_generation_manifest,
    write_predictions,
)
from harness.predictions.json_lines import read_rows

ROW = {
    "schema_version": "barun-sft-example-v1",
    "id": "a",
    "prompt": "p",
    "target": "t",
}


def manifest_of(tmp_path, *rows):
    path = tmp_path / "manifest.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lines_are_written_in_order_with_sorted_keys(tmp_path):
    path = tmp_path / "predictions.jsonl"
    write_predictions(
        path,
        [
            PredictionLine("b", " text \n", 5, 7, truncated=True),
            PredictionLine("a", None, 9, 0, generation_failure="context_overflow"),
        ],
    )

    assert path.read_bytes() == (
        b'{"generated_tokens":7,"generation_failure":null,"id":"b",'
        b'"prediction_raw":" text \\n","prompt_tokens":5,"truncated":true}\n'
        b'{"generated_tokens":0,"generation_failure":"context_overflow","id":"a",'
        b'"prediction_raw":null,"prompt_tokens":9,"truncated":false}\n'
    )
    assert [row["id"] for row in read_rows(path)] == ["b", "a"]


def test_recorded_predictions_are_not_replaced(tmp_path):
    path = tmp_path / "predictions.jsonl"
    write_predictions(path, [])

    with pytest.raises(UsageError) as refused:
        write_predictions(path, [PredictionLine("a", "x", 1, 1)])

    assert refused.value.code == "eval_output_exists"
    assert path.read_bytes() == b""
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_failure_while_writing_leaves_nothing(tmp_path):
    def lines():
        yield PredictionLine("a", "x", 1, 1)
        raise KeyError

    with pytest.raises(KeyError):
        write_predictions(tmp_path / "predictions.jsonl", lines())

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"prediction_raw": "x", "generated_tokens": 0, "generation_failure": "oom"},
        {"prediction_raw": None, "generated_tokens": 1, "generation_failure": "oom"},
        {"prediction_raw": None, "generated_tokens": 0, "generation_failure": "a b"},
        {"prediction_raw": None, "generated_tokens": 0, "generation_failure": ""},
    ],
)
def test_line_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ValueError, match=r"failure|failed"):
        PredictionLine("a", prompt_tokens=1, **fields)


def test_manifest_rows_are_read_for_generation(tmp_path):
    path = manifest_of(tmp_path, ROW, ROW | {"id": "b", "metadata": {"x": 1}})

    found = list(read_generation_manifest(path, declared_sha256=file_sha256(path)))

    assert [(row.id, row.prompt, row.metadata) for row in found] == [
        ("a", "p", {}),
        ("b", "p", {"x": 1}),
    ]


def test_other_manifest_is_refused_before_its_first_row(tmp_path):
    path = manifest_of(tmp_path, {"broken": True})

    with pytest.raises(SourceError):
        next(read_generation_manifest(path, declared_sha256="0" * 64))


@pytest.mark.parametrize(
    "rows",
    [
        [ROW | {"schema_version": "barun-sft-example-v2"}],
        [ROW | {"extra": 1}],
        [ROW | {"prompt": ""}],
        [ROW | {"target": None}],
        [ROW | {"metadata": []}],
        [ROW, ROW],
    ],
)
def test_row_of_another_form_is_refused(tmp_path, rows):
    with pytest.raises(EvidenceError) as refused:
        list(read_generation_manifest(manifest_of(tmp_path, *rows)))

    assert refused.value.violations[0].where == f"manifest.jsonl:{len(rows)}"


def test_membership_hash_is_of_the_sorted_ids():
    expected = hashlib.sha256(b"a\nb\n").hexdigest()

    assert membership_sha256(["b", "a"]) == expected
