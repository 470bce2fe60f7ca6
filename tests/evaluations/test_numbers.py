"""Equal numbers have one form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import canonical_json, content_hash
from harness.evaluations.numbers import plain_numbers

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_zero_has_one_text(zero):
    assert canonical_json(plain_numbers({"t": [zero]})) == '{"t":[0]}'


def test_truth_is_no_number():
    assert plain_numbers(True) is True


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="no number"):
        plain_numbers({"a": value})


@given(VALUES)
def test_plain_numbers_are_plain_already(value):
    once = plain_numbers(value)

    assert content_hash(plain_numbers(once)) == content_hash(once)


@given(st.integers(-(2**53), 2**53))
def test_integer_and_float_of_it_are_one(number):
    assert canonical_json(plain_numbers(float(number))) == canonical_json(number)
