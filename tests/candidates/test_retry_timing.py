import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.candidates.retry_timing import backoff_s, retry_after_s
from tests.candidates.recording import NOON


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("20", 20.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Mon, 05 Jan 2026 12:00:45 GMT", 45.0),
        ("Monday, 05-Jan-26 12:00:45 GMT", 45.0),
        ("Mon Jan  5 12:00:45 2026", 45.0),
        ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("-1", None),
        ("inf", None),
        ("nan", None),
        ("1e3", None),
        ("9" * 400, None),
        ("", None),
        ("soon", None),
        ("Mon, 99 Jan 2026 12:00:45 GMT", None),
        ("٣", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after_s({"retry-after": value}, NOON) == seconds


def test_milliseconds_beat_seconds():
    headers = {"retry-after-ms": "250", "retry-after": "9"}

    assert retry_after_s(headers, NOON) == 0.25


def test_unreadable_milliseconds_leave_the_seconds():
    headers = {"retry-after-ms": "-1", "retry-after": "9"}

    assert retry_after_s(headers, NOON) == 9.0


@given(st.text())
def test_any_header_text_gives_a_wait_or_none(text):
    wait = retry_after_s({"retry-after": text}, NOON)

    assert wait is None or wait >= 0


@given(st.text(), st.integers(0, 50), st.integers(0, 8))
def test_backoff_doubles_within_its_jitter(request_hash, attempt, retry):
    wait = backoff_s(request_hash, attempt, retry)

    assert 0.75 <= wait / (0.25 * 2**retry) <= 1.25


def test_backoff_is_the_same_for_the_same_attempt():
    assert backoff_s("sha256:aa", 1, 1) == backoff_s("sha256:aa", 1, 1)
