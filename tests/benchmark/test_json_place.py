"""Where a value of a JSON file stands, or that nobody can tell."""

import json

import pytest
from hypothesis import given

from harness.benchmark.json_place import JsonLines, fault_line, json_path
from harness.strict_json import StrictJsonError, decode_document
from tests.test_canonical import VALUES


def paths(value, path=()):
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in items:
            yield from paths(member, (*path, key))


def test_line_of_every_value():
    lines = JsonLines('{\n "a": [\n  1,\n  {"b": 2}],\n "c":\n 3}')

    assert [lines.line(path) for path in [(), ("a",), ("a", 0), ("a", 1, "b")]] == [
        1,
        2,
        3,
        4,
    ]
    assert lines.line(("a", 1, "nothing")) == 4


def test_text_that_yaml_does_not_read_has_no_lines():
    assert JsonLines(json.dumps({"k" * 2000: 1})).line(()) is None


@given(VALUES)
def test_no_valid_text_breaks_it(value):
    lines = JsonLines(json.dumps(value, indent=1))

    assert all(line is None or line >= 1 for line in map(lines.line, paths(value)))


@pytest.mark.parametrize(
    "text", ["[1,\n}", "[1,\nNaN]", '["NaN",\n-Infinity]', '[1,\n{"a":1,"a":2}]']
)
def test_fault_has_its_line(text):
    with pytest.raises(StrictJsonError) as caught:
        decode_document(text.encode())

    assert fault_line(text.encode(), caught.value) == 2


def test_written_path_is_read():
    assert json_path("tools[3].function.a.0") == (3, "function", "a", "0")
