"""Stages and executables: quotes, separators, assignments and wrappers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic import shell
from harness.scoring.mlperf_agentic.aliases import WRAPPERS, canonical_action
from harness.scoring.mlperf_agentic.shell import executables, without_quoted

pieces = st.sampled_from(
    [*"'\"`\\\n\t |&;=/.-aA_1", "||", "&&", "ls", "sudo", "X=1", '\\"', "\u2003", "\r"]
)
commands = st.lists(pieces, max_size=40).map("".join)


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("a 'b | c' d", "a   d"),
        ('a "b \\" c" d', "a   d"),
        ("a `b\nc` d", "a   d"),
        ("it's", "it's"),
        ('"a\\\nb"', '"a\\\nb"'),
        ("'a\\' b'", "  b'"),
        ("'\"' \"'\"", "   "),
    ],
)
def test_quoted_span_becomes_one_space(command, left):
    assert without_quoted(command) == left


@given(commands)
def test_reading_a_long_command_once_finds_the_same_spans(command):
    plain = shell._QUOTED.sub(" ", command)

    assert shell._without_quoted_once(command) == plain


def plain_reading(command):
    """The rule as it is told, without care for speed."""
    for stage in re.split(r"\|\||\||&&|;|\n", shell._QUOTED.sub(" ", command)):
        words = stage.split()
        if not words:
            continue
        while words and (
            words[0] in WRAPPERS or re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0])
        ):
            words = words[1:]
        yield words[0] if words else None


@given(commands)
def test_executables_are_those_of_the_plain_reading(command):
    assert list(executables(command)) == list(plain_reading(command))


@pytest.mark.parametrize(
    "command",
    [
        "sudo " * 50_000,
        '"' + '\\"' * 200_000,
        '"' + "\\\\\\" * 100_000,
        ('"' + '\\"' * 50 + "\\\n") * 4_000,
        "'\"`" * 100_000,
        "x" + ".1" * 200_000,
        "A=" * 200_000,
        "|" * 200_000,
    ],
    ids=[
        "wrappers",
        "escaped",
        "backslashes",
        "cut",
        "mixed",
        "version",
        "assigned",
        "bars",
    ],
)
@pytest.mark.timeout(5)
@pytest.mark.slow
def test_no_command_takes_long(command):
    names = [canonical_action(word) for word in executables(command) if word]

    assert set(names) <= {None}
