"""Answers in pieces: chunks of text and deltas of calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic.model_output import (
    OutputTypeError,
    finished_calls,
    model_output,
)
from harness.scoring.mlperf_agentic.skips import CallSkip


def delta(index, arguments="", name=None):
    return {"index": index, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ([], ("", None, None)),
        (["a"], ("a", None, None)),
        ([["a", "b"], ["c", "d"]], ("ab", "cd", None)),
        (["a", "", []], ("a", None, [])),
        ([[], []], ("", None, None)),
    ],
)
def test_chunks_are_joined(fields, output):
    assert model_output(fields) == output


@pytest.mark.parametrize(
    "fields", [[None], [5], ["a", 5], [["a", None]], ["a", None, "x"], ["a", None, {}]]
)
def test_other_types_are_no_output(fields):
    with pytest.raises(OutputTypeError):
        model_output(fields)


def test_deltas_are_merged_by_index_and_ordered_by_it():
    found = finished_calls(
        [
            [delta(1, "b", "bash")],
            [delta(0, '{"', "bash"), delta(1, "c")],
            [delta(0, "}")],
        ]
    )

    arguments = [call["function"]["arguments"] for call in found.calls]
    assert arguments == ['{"}', "bc"]
    assert found.skips == ()


def test_later_null_does_not_take_the_name_away():
    (call,) = finished_calls([[delta(0, "x", "bash")], [delta(0, "y")]]).calls

    assert call["function"] == {"name": "bash", "arguments": "xy"}


def test_calls_without_an_index_collapse_into_one():
    pieces = [[{"function": {"name": "bash", "arguments": "{}"}}]] * 2

    (call,) = finished_calls(pieces).calls

    assert call["function"]["arguments"] == "{}{}"


def test_finished_calls_stay_as_they_are():
    calls = [{"function": {"name": "bash"}}, [delta(0)]]

    assert finished_calls(calls) == (calls, ())


@pytest.mark.parametrize(
    ("chunks", "skip"),
    [
        ([[], "x"], CallSkip.DELTA_CHUNK_NOT_ARRAY),
        ([[None]], CallSkip.DELTA_NOT_OBJECT),
        ([[{"function": "bash"}]], CallSkip.DELTA_FUNCTION_NOT_OBJECT),
        ([[{"index": [0]}]], CallSkip.DELTA_INDEX_UNUSABLE),
        ([[delta(None, "{}", "bash"), delta(0)]], CallSkip.DELTA_INDEX_UNORDERED),
        ([[delta("a"), delta(None)]], CallSkip.DELTA_INDEX_UNORDERED),
        ([[delta(0, {"command": "ls"})]], CallSkip.DELTA_FRAGMENT_NOT_TEXT),
    ],
)
def test_broken_delta_is_a_named_skip(chunks, skip):
    whole = [delta(7, "{}", "bash")]

    found = finished_calls([*chunks, whole])

    assert skip in found.skips
    assert found.calls[-1]["function"]["arguments"] == "{}"


odd = st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "index": odd | st.lists(odd, max_size=1) | st.floats(-1, 1),
        "id": odd,
        "function": odd
        | st.fixed_dictionaries({}, optional={"name": odd, "arguments": odd}),
    },
)


@given(st.lists(st.lists(deltas | odd, max_size=3) | odd, max_size=4))
def test_no_deltas_are_an_error(chunks):
    finished_calls(chunks)
