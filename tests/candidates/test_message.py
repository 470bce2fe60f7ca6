import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.candidates.message import decode_arguments, decode_message
from tests.servers import tool_call

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
LONE = "\ud83d"


def is_one_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@given(st.text() | JSON.map(json.dumps))
def test_text_that_is_no_object_never_yields_an_object(text):
    parsed, status, _ = decode_arguments(text)

    if not is_one_object(text):
        assert (parsed, status != "valid_object") == (None, True)


@given(JSON)
def test_any_value_as_tool_calls_is_decoded_without_an_error(value):
    decoded = decode_message({"content": None, "tool_calls": value})

    assert decoded.text == ""


@given(JSON, st.sampled_from(["id", "type", "function", "index"]))
def test_any_value_inside_a_call_is_decoded_without_an_error(value, slot):
    call = {**tool_call("look", {}), slot: value}

    decoded = decode_message({"tool_calls": [call]})

    json.dumps([c.semantic_payload() for c in decoded.calls]).encode()


@given(JSON)
def test_any_value_as_content_is_decoded_without_an_error(value):
    decoded = decode_message({"content": value})

    assert decoded.text is None or isinstance(decoded.text, str)


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (None, "missing", None),
        ({}, "wrong_type", None),
        ("", "invalid_json", "invalid_json"),
        ('{}""', "invalid_json", "invalid_json"),
        ('"{}"', "json_not_object", "top_level_not_object"),
        ('{"a":1,"a":2}', "invalid_json", "duplicate_key"),
        ('{"a":NaN}', "invalid_json", "non_finite_number"),
        ('{"a":1e999}', "invalid_json", "non_finite_number"),
        ('{"a":"\\ud800"}', "invalid_json", "invalid_utf8"),
        (f'{{"a":"{LONE}"}}', "invalid_json", "invalid_utf8"),
        ('{"a":' + "[" * 70 + "]" * 70 + "}", "invalid_json", "max_nesting_exceeded"),
    ],
)
def test_unusable_arguments_have_a_status_and_the_decoders_code(raw, status, code):
    assert decode_arguments(raw) == (None, status, code)


def test_large_integers_keep_every_digit():
    parsed, _, _ = decode_arguments('{"id":9007199254740993}')

    assert parsed == {"id": 9007199254740993}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({}, ""),
        ({"content": None, "refusal": "No."}, "No."),
        ({"content": "Yes.", "refusal": "No."}, "Yes."),
        ({"content": [{"type": "output_text", "text": "a"}]}, "a"),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "No."),
        (
            {
                "content": [
                    {"type": "refusal", "refusal": "No."},
                    {"type": "text", "text": "a"},
                    {"type": "reasoning", "text": "hm"},
                    {"type": "text", "text": "b"},
                ]
            },
            "ab",
        ),
        ({"content": "", "reasoning_content": "thinking"}, ""),
    ],
)
def test_text_is_formed_from_the_text_fields_alone(message, text):
    decoded = decode_message(message)

    assert (decoded.text, decoded.defect) == (text, None)


@pytest.mark.parametrize(
    ("message", "defect"),
    [
        ({"content": 7}, "malformed_response"),
        ({"content": ["a"]}, "malformed_response"),
        ({"content": [{"type": "function_call"}]}, "call_in_content"),
        ({"function_call": {}}, "legacy_function_call"),
        ({"tool_calls": {}}, "malformed_response"),
        ({"tool_calls": [[]]}, "malformed_response"),
        ({"tool_calls": [{**tool_call("f", {}), "type": "custom"}]}, None),
        ({"content": f"a{LONE}"}, "invalid_unicode"),
        ({"tool_calls": [tool_call(f"f{LONE}", {})]}, "invalid_unicode"),
        ({"tool_calls": [tool_call("f", {}, f"c{LONE}")]}, "unusable_tool_call_ids"),
    ],
)
def test_each_defect_of_the_message_is_named(message, defect):
    assert decode_message(message).defect == (defect or "call_type_unsupported")


def test_structure_beats_ids_and_ids_beat_arguments():
    bad_id = tool_call("f", "{", "")
    no_name = {"id": "x", "function": {"arguments": "{"}}

    ids = decode_message({"tool_calls": [bad_id]}).defect
    structure = decode_message({"tool_calls": [bad_id, no_name]}).defect

    assert (ids, structure) == ("unusable_tool_call_ids", "malformed_response")


def test_two_calls_of_one_tool_stay_two():
    calls = [tool_call("f", {}, "a"), tool_call("f", {}, "b")]

    assert len(decode_message({"tool_calls": calls}).calls) == 2


def test_text_that_is_no_unicode_reaches_no_field():
    call = tool_call("f", f'{{"a":"{LONE}"}}')
    decoded = decode_message({"content": f"a{LONE}", "tool_calls": [call]})

    kept = (decoded.text, decoded.calls[0].raw_arguments, decoded.echo)
    assert kept == (None, None, None)


def test_echo_repeats_the_message_as_received():
    call = {**tool_call("f", {}), "index": 3, "extra_content": {"signature": "AQ=="}}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]
    message = {"content": content, "tool_calls": [call], "reasoning_content": "hm"}

    expected = {"role": "assistant", "content": content, "tool_calls": [call]}
    assert decode_message(message).echo == expected


def test_echo_repeats_the_reasoning_where_the_endpoint_wants_it():
    message = {"content": "a", "reasoning_content": "hm", "tool_calls": []}

    expected = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    assert decode_message(message, echo_reasoning=True).echo == expected
