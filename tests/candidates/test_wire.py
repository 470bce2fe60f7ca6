import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.candidates.wire import BODY_CAP_BYTES, classify
from harness.causes import CAUSES
from tests.candidates.recording import NOON

TEXT_CHOICE = {"message": {"content": "Hi"}, "finish_reason": "stop"}
CLASS_AND_DETAIL = [
    (400, {"error": {"code": "content_policy_violation"}}, "content_filter"),
    (403, {"error": {"metadata": {"reasons": ["violence"]}}}, "content_filter"),
    (403, {"error": {"metadata": {"provider_name": "X"}}}, "provider_rejected"),
    (403, {}, "authentication_failed"),
    (407, None, "authentication_failed"),
    (500, {"error": {"type": "insufficient_quota"}}, "quota_exhausted"),
    (400, {"error": {"code": "billing_not_active"}}, "quota_exhausted"),
    (400, {"code": "context_length_exceeded"}, "context_length"),
    (408, None, "timeout"),
    (409, None, "provider_unavailable"),
    (425, None, "provider_unavailable"),
    (501, None, "provider_rejected"),
    (505, None, "provider_rejected"),
    (204, None, "provider_rejected"),
    (302, None, "provider_rejected"),
    (400, {"error": {"code": "tool_use_failed"}}, "provider_rejected"),
    (400, {"error": {"code": {}, "type": []}}, "provider_rejected"),
    (400, [{"error": {"code": "content_filter"}}], "content_filter"),
    (400, {"error": "content_filter"}, "provider_rejected"),
]
ERRORS_IN_A_200 = [
    ({"error": {"code": "401"}}, "authentication_failed"),
    ({"error": {"code": 429}, "choices": [TEXT_CHOICE]}, "rate_limited"),
    ({"error": {"code": 400}}, "provider_rejected"),
    ({"error": {"code": 200}}, "provider_unavailable"),
    ({"error": {"code": True}}, "provider_unavailable"),
    ({"error": {"code": "insufficient_quota"}}, "quota_exhausted"),
    ({"error": {"code": "content_filter"}}, "content_filter_output"),
    ({"error": {"code": 400, "metadata": {"reasons": [1]}}}, "content_filter_prompt"),
    ({"error": "overloaded"}, "provider_unavailable"),
    ({"object": "error", "code": 503}, "provider_unavailable"),
    ({"type": "error"}, "provider_unavailable"),
    ({"choices": [{**TEXT_CHOICE, "error": {"code": 502}}]}, "provider_unavailable"),
    ({"choices": [{**TEXT_CHOICE, "error": {}}]}, "generation_aborted"),
]
BROKEN_200 = [
    (b"", "envelope_malformed"),
    (b" \n\n", "envelope_malformed"),
    (b"[]", "envelope_malformed"),
    (b'{"choices":[],"choices":[]}', "envelope_malformed"),
    (b'{"choices":NaN}', "envelope_malformed"),
    (b"\xff", "envelope_malformed"),
    (b'{"choices":[1]}', "envelope_malformed"),
    (b'{"choices":{}}', "envelope_malformed"),
    (b'{"choices":[1,2]}', "multiple_choices"),
    (b'{"choices":[{"finish_reason":"stop"}]}', "envelope_malformed"),
    (b'{"choices":[{"finish_reason":"abort"}]}', "generation_aborted"),
    (b'{"choices":[{"finish_reason":7}]}', "unknown_finish_reason"),
    (b'{"choices":[{"finish_reason":"\\ud800"}]}', "unknown_finish_reason"),
]


def judge(status, payload, headers=None):
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return classify(status, headers or {}, body, now=NOON)


@pytest.mark.parametrize(("status", "payload", "detail"), CLASS_AND_DETAIL)
def test_error_status_is_classified_by_status_and_structured_code(
    status, payload, detail
):
    found = judge(status, b"" if payload is None else payload)

    assert detail in (found.detail_code, found.wire_class)


@pytest.mark.parametrize(("payload", "detail"), ERRORS_IN_A_200)
def test_error_inside_a_200_beats_the_choice(payload, detail):
    assert judge(200, payload).detail_code == detail


@pytest.mark.parametrize(("body", "detail"), BROKEN_200)
def test_broken_envelope_is_never_the_candidates(body, detail):
    found = judge(200, body)

    assert (found.detail_code, found.generated) == (detail, False)


def test_byte_order_mark_and_white_space_around_the_object_are_allowed():
    body = b"\xef\xbb\xbf\n\n" + json.dumps({"choices": [TEXT_CHOICE]}).encode()

    assert judge(200, body).wire_class == "ok"


def test_body_over_the_cap_is_fatal():
    found = judge(200, b" " * (BODY_CAP_BYTES + 1))

    assert (found.wire_class, found.retryable) == ("transport_fatal", False)


@pytest.mark.parametrize(
    ("reason", "wire_class"),
    [
        ("end_turn", "ok"),
        ("model_length", "truncated"),
        ("SAFETY", "content_filter"),
        ("UNEXPECTED_TOOL_CALL", "candidate_malformed"),
        ("function_call_filter: UNEXPECTED_TOOL_CALL", "candidate_malformed"),
        ("network_error", "transport_retryable"),
        ("Stop", "transport_fatal"),
    ],
)
def test_finish_reason_decides_the_class(reason, wire_class):
    choice = {**TEXT_CHOICE, "finish_reason": reason}

    assert judge(200, {"choices": [choice]}).wire_class == wire_class


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"content": "Hi"}, "completed"),
        (
            {
                "tool_calls": [
                    {"id": "a", "function": {"name": "f", "arguments": "{"}},
                ]
            },
            "completed",
        ),
        ({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "completed"),
        ({"tool_calls": "x"}, "malformed_response"),
        ({"function_call": {}}, "malformed_response"),
    ],
)
def test_received_message_maps_to_one_call_status(message, status):
    found = judge(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    assert found.outcome_status == status


def test_filter_on_an_error_status_is_a_rejection_and_on_a_200_a_completion():
    prompt = judge(400, {"error": {"code": "content_filter"}})
    output = judge(
        200, {"choices": [{"message": {}, "finish_reason": "content_filter"}]}
    )

    statuses = (prompt.outcome_status, output.outcome_status)
    assert statuses == ("provider_rejected", "completed")


def test_wait_is_read_only_where_the_request_may_be_sent_again():
    headers = {"retry-after": "3"}
    quota = {"error": {"code": "insufficient_quota"}}

    waits = [judge(429, b"", headers), judge(429, quota, headers)]
    assert [found.retry_after_s for found in waits] == [3.0, None]


def test_fields_of_the_envelope_that_are_no_unicode_are_left_out():
    body = json.dumps(
        {"id": "\ud800", "usage": {"\ud800": 1}, "choices": [TEXT_CHOICE]}
    )
    found = judge(200, body.encode())

    assert (found.response_id, found.usage, found.text) == (None, None, "Hi")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "code",
                    "choices",
                    "message",
                    "metadata",
                    "type",
                    "innererror",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([200, 400, 403, 422, 429, 500]), JSON)
def test_every_body_has_a_class_and_every_stop_a_cause(status, payload):
    found = judge(status, payload)

    is_stop = found.outcome_status in ("provider_rejected", "retry_exhausted")
    code = f"episode.candidate_call_failed.{found.detail_code}"
    assert not is_stop or code in CAUSES
