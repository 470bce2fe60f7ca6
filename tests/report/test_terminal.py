"""Tables line up on a real terminal whatever stands in their cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.terminal import (
    display_width,
    on_lines_of_their_own,
    table,
    wrap,
)
from harness.visible_text import visible


def test_text_stands_left_and_numbers_right():
    text = table(["name", "count"], [["gold", 12], ["words", 3]])

    assert text == ("name   count\n-----  -----\ngold      12\nwords      3")


@pytest.mark.parametrize("cell", ["3/5", "-1.5", "n/a", "-", "60.0 %", "<0.1 %"])
def test_counts_rates_and_gaps_count_as_numbers(cell):
    text = table(["value     "], [[cell]])

    assert text.splitlines()[-1] == cell.rjust(10)


def test_one_word_among_numbers_puts_the_column_left():
    assert table(["value"], [[1], ["none"]]).splitlines()[2] == "1"


def test_no_rows_leave_the_headers():
    assert table(["a", "b"], []) == "a  b\n-  -"


def test_no_headers_are_no_table():
    assert table([], []) == ""


def test_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="expected 2 cells, seen 1"):
        table(["a", "b"], [["x"]])


def test_indent_goes_before_every_line():
    assert table(["a"], [["b"]], indent=2) == "  a\n  -\n  b"


def test_wide_characters_take_two_columns():
    lines = table(["a", "b"], [["日本", "x"], ["ab", "y"]]).splitlines()

    assert lines[2] == "日本  x"
    assert lines[3] == "ab    y"


def test_combining_characters_take_none():
    assert display_width("e\u0301") == 1
    assert display_width("é") == 1
    assert display_width("日本") == 4
    assert display_width("") == 0


def test_widest_cells_wrap_to_the_width_asked_for():
    text = table(
        ["code", "meaning"],
        [["a.code", "a sentence that is longer than there is room for"]],
        width=30,
    )

    assert text == (
        "code    meaning\n"
        "------  ----------------------\n"
        "a.code  a sentence that is\n"
        "        longer than there is\n"
        "        room for"
    )


def test_words_stay_whole_while_sentences_can_wrap():
    text = table(
        ["code", "meaning"], [["episode.oracle_timeout", "a b c d e f g"]], width=32
    )

    assert text.splitlines()[2] == "episode.oracle_timeout  a b c d"


def test_lines_of_a_cell_stay_lines():
    assert table(["a", "b"], [["x\ny", "z"]]).splitlines()[2:] == ["x  z", "y"]


def test_words_longer_than_the_line_are_cut():
    assert wrap("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]


def test_empty_text_is_one_empty_line():
    assert wrap("", 5) == [""]


def test_no_width_is_refused():
    with pytest.raises(ValueError, match="at least one column"):
        wrap("a", 0)


TEXTS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="┃"), max_size=20
)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_second_column_starts_at_one_place(rows):
    text = table(["first", "second"], [(f".{a}", f"┃{b}") for a, b in rows])

    starts = {
        display_width(line[: line.index("┃")])
        for line in text.splitlines()
        if "┃" in line
    }

    assert len(starts) == 1


@given(TEXTS, st.integers(2, 12))
def test_wrapped_lines_fit(text, width):
    assert all(display_width(line) <= width for line in wrap(visible(text), width))


@given(TEXTS, st.integers(2, 12))
def test_wrapping_loses_only_spaces(text, width):
    shown = visible(text)

    kept = "".join(wrap(shown, width)).replace(" ", "").replace("\n", "")

    assert kept == shown.replace(" ", "").replace("\n", "")


def test_line_cannot_begin_another_or_move_the_cursor():
    text = on_lines_of_their_own(["server: a\n  1. b", "\x1b[2Jc", "d"])

    assert text == "server: a\\u{a}  1. b\n\\u{1b}[2Jc\nd\n"
