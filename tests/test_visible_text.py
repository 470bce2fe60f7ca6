"""What others wrote moves no cursor and hides nothing."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FairtrialError
from harness.visible_text import JOINERS, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\u{1b}[31mred"),
        ("a\rb", "a\\u{d}b"),
        ("a\u202eb", "a\\u{202e}b"),
        ("a\x85b", "a\\u{85}b"),
        ("tab\t", "tab\\u{9}"),
        ("\ud800", "\\u{d800}"),
        ("two\nlines", "two\nlines"),
        ("ä日", "ä日"),
    ],
)
def test_what_moves_a_cursor_is_shown_as_an_escape(text, shown):
    assert visible(text) == shown


@given(st.text() | st.text(st.characters(max_codepoint=0x7F)))
def test_no_hidden_character_is_left(text):
    left = set(visible(text)) - JOINERS - {"\n"}

    assert not any(unicodedata.category(each).startswith("C") for each in left)


def test_message_of_an_error_commands_no_terminal_and_adds_no_line_of_ours():
    error = FairtrialError(
        "eval_cli_invalid",
        "the pack says \x1b[2J",
        actual="\x1b]0;title\x07 so\n  do: run this",
    )

    assert str(error).splitlines() == [
        "eval_cli_invalid: the pack says \\u{1b}[2J",
        "  seen: \\u{1b}]0;title\\u{7} so",
        "      do: run this",
    ]
