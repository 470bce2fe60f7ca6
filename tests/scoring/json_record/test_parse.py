"""What parses, and what does not, as Python 3.11 has it on every version."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.json_record.parse import UnparseableError, parse_answer, unfenced

SPACES = "\x20\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2003\u2028\u3000"


@pytest.mark.parametrize(
    "text",
    [
        "```json\n7\n```",
        "```\n7\n```",
        "```json 7 ```",
        "```json7```",
        "```7```",
        "```json\r\n7\r\n```",
        f"{SPACES}```json{SPACES}7{SPACES}```{SPACES}",
        f"{SPACES}7{SPACES}",
    ],
)
def test_one_fence_around_everything_is_taken_off(text):
    assert parse_answer(text) == 7


@pytest.mark.parametrize(
    "text",
    [
        "``` json\n{}\n```",
        "```JSON\n{}\n```",
        "```Json\n{}\n```",
        "```jsonc\n{}\n```",
        "```json5\n{}\n```",
        "```python\n{}\n```",
        "````\n{}\n````",
        "~~~\n{}\n~~~",
        "``{}``",
        "`{}`",
        "```json\n{}",
        "{}\n```",
        "Here: ```json\n{}\n```",
        "```json\n{}\n```.",
        "```\n{}\n```\n```\n{}\n```",
        "```\n```json\n{}\n```\n```",
        "```",
        "``````",
        "```json```",
        "",
        SPACES,
        "\ufeff{}",
        "\u200b{}",
        "{}{}",
        "{} // c",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": +7}',
        '{"a": 07}',
        '{"a": 5.}',
        '{"a": "\n"}',
        "nan",
        "True",
    ],
)
def test_anything_else_does_not_parse(text):
    with pytest.raises(UnparseableError):
        parse_answer(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("1e999", math.inf),
        ('"\\ud800"', "\ud800"),
        ("null", None),
        ('{"a": "```"}', {"a": "```"}),
        ('```json\n{"a": "```"}\n```', {"a": "```"}),
    ],
)
def test_leniency_of_the_decoder_is_part_of_the_rule(text, value):
    assert parse_answer(text) == value


def test_nan_parses():
    assert math.isnan(parse_answer("NaN"))


@pytest.mark.parametrize(("digits", "parses"), [(4300, True), (4301, False)])
@pytest.mark.parametrize("sign", ["", "-"])
def test_integer_has_the_digits_of_the_interpreter(digits, parses, sign):
    text = "[" + sign + "1" * digits + "]"
    if parses:
        assert abs(parse_answer(text)[0]) > 10 ** (digits - 1)
        return

    with pytest.raises(UnparseableError):
        parse_answer(text)


def test_long_text_of_a_float_or_a_string_is_no_long_integer():
    digits = "1" * 5000

    assert parse_answer(f'["{digits}", 0.{digits}]') == [digits, float(f"0.{digits}")]


@pytest.mark.parametrize("text", ["[" * 961 + "]" * 961, "[" * 100_000, '{"a":' * 5000])
def test_nesting_past_the_parser_does_not_parse(text):
    with pytest.raises(UnparseableError):
        parse_answer(text)


@given(st.text())
def test_no_text_ends_the_parser(text):
    with suppress(UnparseableError):
        parse_answer(text)


@given(st.text(SPACES), st.text(SPACES), st.sampled_from(["", "json"]))
def test_fence_and_space_change_no_value(before, after, language):
    value = {"a": [1, None, "x"]}
    fenced = f"{before}```{language}\n{json.dumps(value)}{after}```{after}"

    assert parse_answer(fenced) == value


def test_text_without_a_fence_is_only_trimmed():
    assert unfenced(" a ``` b ") == "a ``` b"
