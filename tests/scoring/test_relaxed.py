"""The relaxed rules, each alone, and the pairing that they need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.relaxed import (
    largest_matching,
    nearer,
    same_folded,
    same_number,
    without_extras,
)


@pytest.mark.parametrize(
    ("made", "gold", "same"),
    [
        (1, 1.0, True),
        (1.0, 1, True),
        (1, 1.5, False),
        (True, 1, False),
        (0, False, False),
        ("1", 1, False),
        (2**53 + 1, float(2**53), False),
    ],
)
def test_number_rule_looks_at_values_of_numbers_only(made, gold, same):
    assert same_number(made, gold) is same


@pytest.mark.parametrize(
    ("made", "gold", "same"),
    [
        ("DUNE", "dune", True),
        ("  the\tsea ", "The Sea", True),
        ("caf\u0065\u0301", "CAF\u00c9", True),
        ("stra\u00dfe", "STRASSE", True),
        ("thesea", "the sea", False),
        ("1", 1, False),
    ],
)
def test_string_rule_folds_case_blanks_and_composition(made, gold, same):
    assert same_folded(made, gold) is same


def test_only_parts_that_are_the_same_are_rewritten():
    made = {"a": [1.0, 2], "b": {"c": 3.0, "d": 4}, "e": 5.0}
    gold = {"a": [1, 9], "b": {"c": 3}, "f": 5}

    assert repr(nearer(made, gold, same_number)) == repr(
        {"a": [1, 2], "b": {"c": 3, "d": 4}, "e": 5.0}
    )


def test_lists_of_two_lengths_stay_as_they_were_made():
    assert repr(nearer([1.0], [1, 2], same_number)) == "[1.0]"


def test_extra_arguments_are_left_out_at_the_top_only():
    made = {"a": {"b": 1, "x": 2}, "y": 3}

    assert without_extras(made, {"a": {"b": 1}}) == {"a": {"b": 1, "x": 2}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(json_values)
def test_value_that_is_gold_already_stays_gold(value):
    assert nearer(value, value, same_number) == value


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=4))
def test_matching_is_valid_and_cannot_be_larger(fit):
    pairs = largest_matching(fit)

    taken = [pair for pair in pairs if pair is not None]
    assert len(set(taken)) == len(taken)
    assert all(fit[row][pair] for row, pair in enumerate(pairs) if pair is not None)
    assert len(taken) == _best(fit, 0, frozenset())


def _best(fit, row, taken):
    if row == len(fit):
        return 0
    without = _best(fit, row + 1, taken)
    placed = [
        1 + _best(fit, row + 1, taken | {column})
        for column, fitting in enumerate(fit[row])
        if fitting and column not in taken
    ]
    return max([without, *placed])


def test_rows_keep_their_own_place_where_all_of_them_fit():
    assert largest_matching([[True, True], [True, True]]) == [0, 1]
