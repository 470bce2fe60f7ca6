"""Marks beside the score: each marker once, and what looks alike but is none."""

import pytest

from harness.conversation.companions import (
    CALL_MARKERS,
    MARKER_LIST,
    ends_inside_json,
    suspected_call_markup,
    turn_companions,
)
from harness.evidence.episode import CandidateResponse
from tests.scoring.episodes import made

NAMES = ("find", "status")


def marks(
    *calls, text="", finish="stop", usage=None, max_tokens=100, expects_calls=True
):
    response = CandidateResponse(
        provider_response_id=None,
        provider_request_id=None,
        served_model=None,
        server=None,
        message=None,
        text=text,
        tool_calls=calls,
        finish_reason=finish,
        usage=usage,
        selected_attempt=0,
        raw_response_hash="",
    )
    return turn_companions(
        response,
        expects_calls=expects_calls,
        tool_names=NAMES,
        max_tokens=max_tokens,
    )


@pytest.mark.parametrize("marker", CALL_MARKERS)
def test_every_marker_of_the_list_is_seen(marker):
    assert suspected_call_markup(f"Sure. {marker} something", NAMES)


def test_list_has_a_name_and_its_twelve_markers():
    assert (MARKER_LIST, len(CALL_MARKERS)) == ("call-markup-1", 12)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "find", "arguments": {}}',
        '  {"name": "status", "parameters": {"a": 1}}\n',
        '[{"name": "find", "arguments": {}}, {"name": "status", "parameters": {}}]',
        '```json\n{"name": "find", "arguments": {}}\n```',
        '```\n{"name": "find", "arguments": {}}```',
        '```{"name": "find", "arguments": {}}```',
        '```{"name": "find",\n"arguments": {}}```',
    ],
)
def test_text_that_is_a_call_and_nothing_else_is_seen(text):
    assert suspected_call_markup(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I will use find.",
        '{"name": "lose", "arguments": {}}',
        '{"name": 1, "arguments": {}}',
        '{"name": "find", "arguments": "{}"}',
        '{"name": "find"}',
        "[]",
        "[1]",
        '[{"name": "find", "arguments": {}}, 1]',
        '{"name": "find", "arguments": {}} there',
        '{"name": "find", "arguments": {',
        '``````json\n{"name": "find", "arguments": {}}\n``````',
        "```",
    ],
)
def test_other_text_is_not(text):
    assert not suspected_call_markup(text, NAMES)


def test_markup_without_calls_where_calls_belong_is_a_parse_loss():
    text = "<tool_call>{}</tool_call>"

    assert marks(text=text) == ("suspected_call_markup", "serving_parse_loss")
    assert marks(text=text, expects_calls=False) == ("suspected_call_markup",)
    assert marks(made("find"), text=text) == ("suspected_call_markup",)


def cut(raw, status="invalid_json"):
    return made("find", raw=raw, status=status)


@pytest.mark.parametrize(
    "raw", ['{"city": "Par', '{"a": [1], "b', '{"a": [1, 2', "{", '{"a": "\\']
)
def test_arguments_that_end_too_early_are_a_suspected_truncation(raw):
    assert marks(cut(raw), finish="tool_calls") == ("suspected_truncation",)


@pytest.mark.parametrize("finish", ["length", "max_tokens", None, "content_filter"])
def test_finish_reason_that_admits_the_cut_is_no_suspicion(finish):
    assert marks(cut('{"a'), finish=finish) == ()


@pytest.mark.parametrize("raw", ["{}}", '{}""', "{]", "}", "null", "[1]]", 3])
def test_arguments_broken_otherwise_are_no_suspicion(raw):
    assert marks(cut(raw)) == ()


@pytest.mark.parametrize(
    ("usage", "max_tokens", "suspected"),
    [
        ({"completion_tokens": 100}, 100, True),
        ({"completion_tokens": 99}, 100, False),
        ({"completion_tokens": "100"}, 100, False),
        ({"completion_tokens": 100}, None, False),
        ({}, 100, False),
        (None, 100, False),
    ],
)
def test_generation_that_fills_its_cap_is_a_suspected_truncation(
    usage, max_tokens, suspected
):
    found = marks(text="x", usage=usage, max_tokens=max_tokens)

    assert ("suspected_truncation" in found) is suspected


@pytest.mark.parametrize(("raw", "empty"), [("", True), (" \n", True), ("null", False)])
def test_blank_argument_text_is_counted_by_its_own_name(raw, empty):
    assert ("arguments_empty" in marks(cut(raw))) is empty


def test_object_where_argument_text_belongs_is_not_empty():
    assert marks(cut({}, status="wrong_type")) == ()


@pytest.mark.parametrize(
    ("text", "inside"),
    [('{"a": "}', True), ('{"a": "\\"', True), ('{"a": "x"}', False), ("x{", False)],
)
def test_brackets_in_strings_do_not_close_anything(text, inside):
    assert ends_inside_json(text) is inside


def test_ordinary_answer_has_no_mark():
    assert marks(made("find", title="x"), text="Here you are.") == ()
