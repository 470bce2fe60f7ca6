"""The two readings of JSON: arguments as Python reads them, log lines strictly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic.python_json import (
    NotJsonError,
    TooDeepError,
    decode_arguments,
    decode_line,
)

DEEP = "[" * 800 + "]" * 800
texts = st.lists(
    st.sampled_from(
        [*'{}[]",:0123.eE+- \t\n\\', '"a"', "NaN", "null", "\\u00e9", "\ud800"]
    ),
    max_size=12,
).map("".join)


def verdict(read, text):
    try:
        return repr(read(text))
    except ValueError:
        return "refused"


@given(texts)
def test_arguments_are_read_as_python_reads_them(text):
    assert verdict(decode_arguments, text) == verdict(json.loads, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"x":NaN}',
        '{"x":1e999}',
        '{"x":"\\ud800"}',
        '{"x":"\\udc00\\ud800"}',
        '{"\\udfff":1}',
        '{"x":"\\\\\\ud800"}',
        "{} x",
        "[1,]",
        '"\t"',
    ],
)
def test_line_is_refused(text):
    with pytest.raises(NotJsonError):
        decode_line(text)


@pytest.mark.parametrize(
    "text", ['"\\ud83d\\ude00"', '"\\\\ud800"', '"\\uD83D\\uDE00\\\\"', "1e308"]
)
def test_line_is_read(text):
    assert decode_line(text) == json.loads(text)


def test_depth_that_a_deep_stack_leaves_no_room_for_is_an_error_of_ours():
    """Of CPython 3.11; later ones count the levels of C apart."""

    def below(levels):
        return below(levels - 1) if levels else decode_arguments(DEEP)

    try:
        found = below(200)
    except TooDeepError:
        found = None
    assert found in (None, json.loads(DEEP))
