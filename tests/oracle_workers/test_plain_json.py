"""JSON out of a worker: exactly the evaluator's canonical text, or a refusal."""

import enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import canonical_bytes
from oracle_workers.plain_json import (
    NotJsonError,
    decode,
    decode_canonical,
    decode_strictly,
    encode,
    encode_own,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=12,
)


class Word(str):
    """Text all the same."""


class Level(enum.IntEnum):
    """A number all the same."""

    HIGH = 3


@given(JSON)
def test_json_is_written_as_the_evaluator_writes_it(value):
    assert encode(value) == canonical_bytes(value)
    assert decode(encode(value)) == value


def test_subclasses_and_tuples_take_their_json_form():
    assert encode({Word("a"): (Level.HIGH, Word("b"))}) == b'{"a":[3,"b"]}'


@pytest.mark.parametrize(
    ("value", "type_name", "words"),
    [
        ({"a": {1: 2}}, "dict", "an object key at $.a is int, not text"),
        ({None: 1}, "dict", "key at $ is NoneType"),
        ({True: 1}, "dict", "key at $ is bool"),
        ({"a": [float("nan")]}, "float", "nan at $.a[0]"),
        ([1, {2}], "set", "set at $[1]"),
        (object(), "object", "object at $"),
        ("\ud800", "str", "lone surrogate"),
        ({"big": 10**5000}, "dict", "digits"),
    ],
)
def test_value_without_a_json_form_is_refused_with_its_place(value, type_name, words):
    with pytest.raises(NotJsonError) as caught:
        encode(value)

    assert caught.value.type_name == type_name
    assert words in caught.value.detail


def test_circle_is_refused():
    value = []
    value.append(value)

    with pytest.raises(NotJsonError, match="circular"):
        encode(value)


@pytest.mark.parametrize(
    "content",
    [b'{"a": [1, 2.5, null, true, "\xc3\xa9"]}', b" [] ", b'"\\u00e9"', b"-0", b"1e3"],
)
def test_strict_decoding_agrees_with_the_plain_one(content):
    assert decode_strictly(content) == decode(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"{} {}",
        b'{"a": 1, "a": 1}',
        b'[{"b": {"a": 1, "a": 2}}]',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        b"'a'",
        b"[1,]",
        b"01",
        b"9" * 5000,
        b"[" * 100_000,
    ],
)
def test_what_is_not_one_strict_value_is_refused(content):
    with pytest.raises(NotJsonError):
        decode_strictly(content)


@given(JSON)
def test_own_and_canonical_forms_are_those_of_the_careful_functions(value):
    assert encode_own(value) == encode(value)
    assert decode_canonical(encode(value)) == decode(encode(value))
