"""Which calls of a turn count, and under which name the others are skipped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic.actions import NO_ACTIONS, bash_actions
from harness.scoring.mlperf_agentic.skips import CallSkip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["function", "name", "arguments", "command", "cmd", "x"]),
            inner | st.just("bash"),
            max_size=4,
        )
    ),
    max_leaves=12,
)


def bash(arguments):
    return {"function": {"name": "bash", "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ('{"command": "ls", "cmd": "cat"}', ("ls",)),
        ('{"command": "", "cmd": "cat"}', ("cat",)),
        ('{"command": [], "cmd": "cat"}', ("cat",)),
        ('{"command": " ", "cmd": "cat"}', ()),
        ('{"command": "ls", "command": "cat"}', ("cat",)),
        ('{"command": "ls", "n": NaN}', ("ls",)),
        (' \n{"command": "ls"}\t', ("ls",)),
        ('{"command": "ls \\ud800"}', ("ls",)),
        ({"cmd": "ls | wc"}, ("ls", "wc")),
    ],
)
def test_command_is_the_first_truthy_one(arguments, names):
    assert bash_actions([bash(arguments)]).names == names


@pytest.mark.parametrize(
    ("arguments", "skip"),
    [
        ("{", CallSkip.ARGUMENTS_NOT_JSON),
        ("", CallSkip.ARGUMENTS_NOT_JSON),
        ('\ufeff{"command":"ls"}', CallSkip.ARGUMENTS_NOT_JSON),
        ('{"command":"a\nb"}', CallSkip.ARGUMENTS_NOT_JSON),
        ('\u00a0{"command":"ls"}', CallSkip.ARGUMENTS_NOT_JSON),
        ('{"command":"ls"} x', CallSkip.ARGUMENTS_NOT_JSON),
        ("[]", CallSkip.ARGUMENTS_NOT_OBJECT),
        (None, CallSkip.ARGUMENTS_NOT_OBJECT),
        ('{"command":5,"cmd":"ls"}', CallSkip.COMMAND_NOT_TEXT),
        ("{}", CallSkip.COMMAND_NOT_TEXT),
        ('{"n":-' + "9" * 4301 + "}", CallSkip.ARGUMENTS_INTEGER_TOO_LONG),
        ('{"n":' + "[" * 5000 + "]" * 5000 + "}", CallSkip.ARGUMENTS_TOO_DEEP),
    ],
)
def test_bash_call_without_a_command_is_a_named_skip(arguments, skip):
    found = bash_actions([bash(arguments), bash('{"command":"ls"}')])

    assert found == (("ls",), 1, (skip,))


def test_integer_of_4300_digits_is_read():
    arguments = '{"command":"ls","n":-' + "9" * 4300 + "}"

    assert bash_actions([bash(arguments)]).names == ("ls",)


@pytest.mark.parametrize(
    "calls",
    [
        None,
        "bash",
        {"function": {"name": "bash", "arguments": {"command": "ls"}}},
        [None, 5, "bash"],
        [{"name": "bash", "arguments": {"command": "ls"}}],
        [{"function": {"name": "Bash", "arguments": {"command": "ls"}}}],
        [{"function": "bash"}],
    ],
)
def test_other_shapes_are_no_bash_calls(calls):
    assert bash_actions(calls) == NO_ACTIONS


def test_stages_that_are_not_blank_are_counted():
    command = "cd x && A=1\n\n# note; echo a |  | ls"

    found = bash_actions([bash(json.dumps({"command": command}))])

    assert found == (("ls",), 5, ())


@given(st.lists(json_values, max_size=3) | json_values)
def test_nothing_in_a_turn_is_an_error(calls):
    found = bash_actions(calls)

    assert len(found.names) <= found.stages
