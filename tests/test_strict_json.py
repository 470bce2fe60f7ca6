"""Strict decoding: which code a broken text gets, and that good text is kept whole."""

import json
import math
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.canonical import canonical_json, json_equal
from harness.recursion import room_to_recurse
from harness.strict_json import (
    DOCUMENT_DEPTH,
    MAX_DEPTH,
    MAX_INTEGER_DIGITS,
    StrictJsonError,
    _parse,
    _parse_anything,
    decode,
    decode_document,
    decode_object,
    has_unpaired_surrogate,
    is_past_parser_depth,
)
from tests.test_canonical import VALUES


def code_of(text, reader=decode_object):
    with pytest.raises(StrictJsonError) as caught:
        reader(text)
    return caught.value.code


def error_of(text, reader=decode_object):
    with pytest.raises(StrictJsonError) as caught:
        reader(text)
    return caught.value.code, caught.value.path


def nested(depth, innermost=""):
    """Build an object whose deepest array stands at `depth`."""
    return '{"a":' + "[" * depth + innermost + "]" * depth + "}"


@pytest.mark.parametrize("value", [None, 1, 1.5, True, {}, [], b"{}"])
def test_what_is_not_text_is_a_type_mismatch(value):
    assert error_of(value) == ("type_mismatch", "$")


def test_lone_surrogate_in_the_text_itself():
    assert error_of('{"a":"\ud800"}') == ("invalid_utf8", "$")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "{}}",
        "{} {}",
        "{}x",
        "{'a':1}",
        '{"a":1,}',
        '{"a" 1}',
        '{"a":01}',
        '{"a":+1}',
        '{"a":.5}',
        '{"a":1.}',
        '{"a":1e}',
        '{"a":0x1}',
        '{"a":١}',
        '{"a":nan}',
        '{"a":"\t"}',
        '{"a":"\x00"}',
        '{"a":"\\x41"}',
        '{"a":"\\u12"}',
        '{"a":undefined}',
        "\ufeff{}",
        "\xa0{}",
        "{}\x0c",
        "{}\x0b",
        "{}\u2028",
        "{}\u200b",
        "{}\x00",
        "// {}\n{}",
    ],
)
def test_syntax_errors(text):
    assert error_of(text) == ("invalid_json", "$")


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e309", "-1e400"])
def test_numbers_that_are_not_finite(token):
    assert error_of(f'{{"a":{token}}}') == ("non_finite_number", "$")


@pytest.mark.parametrize("text", ["[]", '"a"', "1", "null", "true", " [ {} ] "])
def test_root_has_to_be_an_object(text):
    assert error_of(text) == ("top_level_not_object", "$")


def test_decode_takes_any_root():
    assert decode(' [1, "a"] ') == [1, "a"]


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '{"x":{"a":1,"a":2}}', '{"":1,"":2}'],
)
def test_byte_equal_keys_are_refused_at_the_root_path(text):
    assert error_of(text) == ("duplicate_key", "$")


def test_keys_equal_after_nfc_are_refused_at_their_object():
    assert error_of('{"x":[{"\u00e9":1,"e\u0301":2}]}') == ("duplicate_key", "$.x[0]")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":"\\ud800"}', "$.a"),
        ('{"a":["ok","\\udc00"]}', "$.a[1]"),
        ('{"a":{"\\ud800":1}}', "$.a"),
        ('{"a":"\\udc00\\ud800"}', "$.a"),
    ],
)
def test_lone_surrogate_escape_is_refused_where_it_stands(text, path):
    assert error_of(text) == ("invalid_utf8", path)


def test_surrogate_pair_of_escapes_is_one_character():
    assert decode_object('{"a":"\\ud83d\\ude00"}') == {"a": "😀"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # Whatever the text reaches first decides.
        ('{"a":NaN,"b"}', "non_finite_number"),
        ('{"b" "a":NaN}', "invalid_json"),
        ('{"x":{"a":1,"a":2},"b"', "duplicate_key"),
        ('{"a":1,"a":2', "invalid_json"),
        ('{"a":1,"a":NaN}', "non_finite_number"),
        ('{"x":{"a":1,"a":2},"y":NaN}', "duplicate_key"),
        # The parse comes before the root's type, that before depth.
        ("[1,2", "invalid_json"),
        ("[" * 70 + "]" * 70, "top_level_not_object"),
        (nested(70) + "x", "invalid_json"),
        # Depth comes before text; text goes in document order.
        ('{"s":"\\ud800","a":' + "[" * 70 + "]" * 70 + "}", "max_nesting_exceeded"),
        ('{"s":"\\ud800","\u00e9":1,"e\u0301":2}', "invalid_utf8"),
        ('{"\u00e9":1,"e\u0301":2,"s":"\\ud800"}', "duplicate_key"),
    ],
)
def test_first_event_decides_the_code(text, code):
    assert code_of(text) == code


def test_depth_counts_values_and_the_root_is_zero():
    assert decode_object(nested(MAX_DEPTH))
    assert code_of(nested(MAX_DEPTH, "1")) == "max_nesting_exceeded"
    assert decode_object(nested(MAX_DEPTH - 1, "1"))
    assert code_of(nested(MAX_DEPTH + 1)) == "max_nesting_exceeded"


@pytest.mark.parametrize("limit", [3, DOCUMENT_DEPTH])
def test_shortest_text_that_is_too_deep_is_refused(limit):
    bare = "[" * (limit + 1) + "{}" + "]" * (limit + 1)

    with pytest.raises(StrictJsonError) as caught:
        decode_document(bare.encode(), max_depth=limit)

    assert caught.value.code == "max_nesting_exceeded"
    assert decode_document(bare.encode(), max_depth=limit + 1)


@pytest.mark.parametrize("levels", [958, 959, 960, 961])
@pytest.mark.parametrize("end", ["]", "x", ', {"a": 1, "a": 2}'])
def test_bare_brackets_are_read_as_any_text(levels, end):
    text = "[" * levels + end * levels

    assert outcome_of(_parse, text) == outcome_of(_parse_anything, text)


@pytest.mark.parametrize("levels", [300, 700, 960])
@pytest.mark.parametrize("end", ["]", "x", ',{"a":1,"a":2}'])
@pytest.mark.parametrize(
    "read", [decode_object, lambda text: decode_document(text.encode())]
)
def test_depth_of_the_caller_changes_nothing(read, levels, end):
    text = "[" * levels + end * levels

    def called_deep(frames):
        return called_deep(frames - 1) if frames else code_of(text, read)

    assert called_deep(700) == code_of(text, read)


def test_brackets_in_text_are_no_depth():
    assert decode_object('{"a":"' + "[{" * 2000 + '"}')


def test_wide_documents_are_no_depth():
    assert decode_object('{"a":[' + ",".join(["[]"] * 2000) + "]}")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_three_thousand_brackets_are_too_deep_closed_or_not(opening):
    closing = "]" if opening == "[" else "}"

    assert code_of(opening * 3000) == "max_nesting_exceeded"
    assert code_of(opening * 3000 + "1" + closing * 3000) == "max_nesting_exceeded"


def test_syntax_error_before_the_depth_limit_wins():
    assert code_of("[}" + "[" * 3000) == "invalid_json"


def test_duplicate_before_the_depth_limit_wins():
    assert code_of('[{"a":1,"a":2},' + "[" * 3000) == "duplicate_key"


def test_integers_keep_every_digit_up_to_the_limit():
    digits = "9" * MAX_INTEGER_DIGITS

    value = decode_object(f'{{"a":{digits},"b":-{digits}}}')

    assert value["a"] == 10**MAX_INTEGER_DIGITS - 1
    assert value["b"] == -value["a"]


@pytest.mark.parametrize("sign", ["", "-"])
def test_longer_integers_are_invalid(sign):
    assert code_of(f'{{"a":{sign}{"1" * (MAX_INTEGER_DIGITS + 1)}}}') == "invalid_json"


def test_long_fractions_are_floats():
    assert decode_object('{"a":0.' + "1" * 5000 + "}")["a"] == pytest.approx(1 / 9)


def test_signed_zeros_and_underflow():
    value = decode_object('{"int":-0,"float":-0.0,"tiny":1e-400}')

    assert type(value["int"]) is int
    assert math.copysign(1, value["float"]) == -1
    assert value["tiny"] == 0.0


@given(VALUES)
def test_any_value_survives_canonical_text(value):
    assume(_nfc_keys_differ(value))

    assert json_equal(decode(canonical_json(value)), value)


@given(VALUES)
def test_ascii_escapes_read_the_same(value):
    assume(_nfc_keys_differ(value))

    assert json_equal(decode(json.dumps(value)), value)


def _nfc_keys_differ(value):
    if isinstance(value, dict):
        normal = {unicodedata.normalize("NFC", key) for key in value}
        return len(normal) == len(value) and all(map(_nfc_keys_differ, value.values()))
    return all(map(_nfc_keys_differ, value)) if isinstance(value, list) else True


@given(st.text(max_size=30))
def test_any_text_gives_a_value_or_a_named_refusal(text):
    codes = {
        "invalid_utf8",
        "duplicate_key",
        "non_finite_number",
        "invalid_json",
        "max_nesting_exceeded",
    }
    refusal = None
    try:
        decode(text)
    except StrictJsonError as error:
        refusal = error.code

    assert refusal is None or refusal in codes


@given(st.text('[]{}",:\\ 10tfnaeuldE+-.', max_size=24))
def test_never_takes_what_the_standard_parser_refuses(text):
    try:
        value = decode(text)
    except StrictJsonError:
        return

    assert json_equal(json.loads(text), value)


def test_document_decodes_utf8_bytes():
    assert decode_document('{"a":"ä"}'.encode()) == {"a": "ä"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"a":"\xff"}', "invalid_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "invalid_utf8"),
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a":NaN}', "non_finite_number"),
        (b"{} {}", "invalid_json"),
        (b"", "invalid_json"),
    ],
)
def test_document_refusals(data, code):
    assert code_of(data, decode_document) == code


def test_document_refuses_a_byte_order_mark_unless_allowed():
    assert code_of(b"\xef\xbb\xbf{}", decode_document) == "invalid_json"
    assert decode_document(b"\xef\xbb\xbf{}", allow_bom=True) == {}


def test_document_depth_has_its_own_limit():
    assert decode_document(nested(DOCUMENT_DEPTH).encode())
    assert (
        code_of(nested(DOCUMENT_DEPTH + 1).encode(), decode_document)
        == "max_nesting_exceeded"
    )


def test_document_leaves_a_lone_surrogate_escape_to_its_caller():
    value = decode_document(b'{"a":"\\ud800"}')

    assert has_unpaired_surrogate(value["a"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), ("ä😀", False), ("\ud800", True), ("a\udfff", True)],
)
def test_unpaired_surrogates_are_seen(text, expected):
    assert has_unpaired_surrogate(text) is expected


def test_error_names_code_path_and_detail():
    with pytest.raises(StrictJsonError) as caught:
        decode_object('{"a":["\\ud800"]}')

    assert str(caught.value) == "invalid_utf8 at $.a[0]: unpaired surrogate"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 960, False),
        ("[" * 961, True),
        ('{"a":' * 961, True),
        ("[]" * 2000, False),
        ('"' + "[" * 2000 + '"', False),
    ],
    ids=["at the limit", "past it", "objects", "beside each other", "in a string"],
)
def test_plain_parsers_limit_counts_what_is_open_at_once(text, expected):
    assert is_past_parser_depth(text) == expected


def outcome_of(reader, text):
    with room_to_recurse():
        try:
            return repr(reader(text))
        except StrictJsonError as error:
            return str(error)


@given(st.text('[]{}",:\\ 10tfnaeuldE+-.NI', max_size=24) | VALUES.map(canonical_json))
def test_short_text_is_read_as_any_text(text):
    assert outcome_of(_parse, text) == outcome_of(_parse_anything, text)


@given(
    st.integers(0, 3 * MAX_INTEGER_DIGITS),
    st.integers(MAX_INTEGER_DIGITS - 1, MAX_INTEGER_DIGITS + 2),
    st.sampled_from(["", "-"]),
    st.integers(0, 20),
)
@settings(max_examples=60)
def test_long_integer_is_found_wherever_it_stands(before, digits, sign, after):
    text = f'["{"x" * before}",{sign}{"7" * digits},"{"y" * after}"]'

    assert outcome_of(_parse, text) == outcome_of(_parse_anything, text)
    if digits > MAX_INTEGER_DIGITS:
        assert code_of(text, _parse) == "invalid_json"
