"""Rows are read as the contracts read them and written as canonical lines."""

import json

import pytest

from harness.errors import EvidenceError
from harness.predictions.json_lines import line_bytes, read_rows


def rows_of(tmp_path, data):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    return list(read_rows(path))


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"", []),
        (b'{"a":1}\n{"b":2}', [{"a": 1}, {"b": 2}]),
        (b'{"a":1}\r\n', [{"a": 1}]),
        (b'{"a":1,"a":2}\n', [{"a": 2}]),
        (b'{"a":Infinity}\n', [{"a": float("inf")}]),
        ('{"a":"\u2028\x85"}\n'.encode(), [{"a": "\u2028\x85"}]),
        (b'{"a":"\\ud800"}\n', [{"a": "\ud800"}]),
    ],
)
def test_plain_json_objects_are_rows(tmp_path, data, rows):
    assert rows_of(tmp_path, data) == rows


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  ",
        b"{",
        b"[1]",
        b"5",
        b'{"a":1} x',
        b'{"a":"\xff"}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":' + b"9" * 4301 + b"}",
        b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
    ],
    ids=lambda line: line[:12],
)
def test_broken_line_is_refused_with_its_number(tmp_path, line):
    with pytest.raises(EvidenceError) as refused:
        rows_of(tmp_path, b'{"a":1}\n' + line + b'\n{"b":2}\n')

    (violation,) = refused.value.violations
    assert (violation.code, violation.where) == (
        "eval_predictions_invalid",
        "rows.jsonl:2",
    )


def test_line_is_canonical_and_keeps_a_lone_surrogate():
    data = line_bytes({"b": "é", "a": "x\ud800y"})

    assert data == '{"a":"x\\ud800y","b":"é"}\n'.encode()
    assert json.loads(data) == {"b": "é", "a": "x\ud800y"}
