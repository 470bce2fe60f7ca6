"""Settings are confirmed by what a response states, and by nothing else."""

import base64
from dataclasses import replace

from harness.engines.chat_readback import (
    SETTINGS,
    applied_settings,
    envelope_of,
    row_conditions,
    token_count,
)
from harness.engines.protocol import UNKNOWN
from harness.evidence.episode import Attempt

ATTEMPT = Attempt(
    attempt_index=0,
    observed_at="2026-01-05T12:00:00.000Z",
    status="completed",
    wire_class="ok",
    detail_code=None,
    retryable=False,
    http_status=200,
    latency_s=0.1,
    raw_response='{"temperature":0.5}',
    raw_response_encoding="utf-8",
    raw_response_hash=None,
    response_headers={},
    provider_request_id=None,
    diagnostic=None,
    retry_after_s=None,
)


def test_silent_response_confirms_nothing():
    assert applied_settings({"choices": []}) == dict.fromkeys(SETTINGS, UNKNOWN)


def test_settings_at_the_top_are_read():
    found = applied_settings({"temperature": 1, "max_output_tokens": 5})

    assert (found["temperature"], found["max_tokens"]) == (1, 5)


def test_settings_of_a_server_beat_the_top():
    settings = {"temperature": 0.0, "repeat_penalty": 1.1, "n_predict": 9}
    envelope = {"temperature": 1.0, "__verbose": {"generation_settings": settings}}

    found = applied_settings(envelope)

    assert found["temperature"] == 0.0
    assert (found["repetition_penalty"], found["max_tokens"]) == (1.1, 9)


def test_greedy_is_never_concluded_from_a_temperature():
    assert applied_settings({"temperature": 0})["greedy"] == UNKNOWN


def test_objects_and_nulls_are_no_values():
    found = applied_settings({"top_p": None, "temperature": {"value": 1}})

    assert (found["top_p"], found["temperature"]) == (UNKNOWN, UNKNOWN)


def test_envelope_is_read_from_text_and_from_bytes():
    encoded = base64.b64encode(b'{"temperature":0.5}').decode()
    other = replace(ATTEMPT, raw_response=encoded, raw_response_encoding="base64")

    assert envelope_of(ATTEMPT) == envelope_of(other) == {"temperature": 0.5}


def test_attempt_without_a_whole_object_has_no_envelope():
    broken = [replace(ATTEMPT, raw_response=raw) for raw in (None, "[1]", "{")]

    assert [envelope_of(each) for each in (None, *broken)] == [{}, {}, {}, {}]


def test_conditions_that_a_response_lacks_are_unknown():
    assert row_conditions({"model": 5, "system_fingerprint": ""}, None) == {
        "served_model": UNKNOWN,
        "system_fingerprint": UNKNOWN,
        "server": UNKNOWN,
    }


def test_counts_are_whole_and_not_negative():
    usage = {"a": 3, "b": -1, "c": 1.0, "d": True, "e": "3"}

    assert [token_count(usage, name) for name in "abcdef"] == [3] + [None] * 5
    assert token_count(None, "a") is None
