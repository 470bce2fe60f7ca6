"""How long to wait before the next attempt: the server's wish and our own backoff.

Pure: the clock is passed in, and the jitter is a digest of the request, so that two
runs over the same evidence wait alike (`spec/wire-contract.md` A5).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BACKOFF_UNIT_S = 0.25
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_HTTP_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:day|sday|nesday|rsday|urday)?,? "
    r"[0-9A-Za-z :-]+(?: GMT)?"
)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait in seconds that the headers ask for, or None.

    `headers` has lower-case names. `retry-after-ms` beats `retry-after`, which is a
    number of seconds or an HTTP date; a date in the past asks for no wait.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    return seconds if seconds is not None else _until(value, now)


def backoff_s(request_hash: str, attempt_index: int, retry: int) -> float:
    """Return our own wait in seconds before retry number `retry` (from 0)."""
    digest = hashlib.sha256(f"{request_hash}:{attempt_index}".encode()).digest()
    jitter = int.from_bytes(digest[:8], "big") / 2**64
    return float(BACKOFF_UNIT_S * 2**retry * (0.75 + 0.5 * jitter))


def _number(text: str | None) -> float | None:
    if text is None or _NUMBER.fullmatch(text.strip()) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _until(text: str | None, now: datetime) -> float | None:
    if text is None or _HTTP_DATE.fullmatch(text.strip()) is None:
        return None
    try:
        moment = parsedate_to_datetime(text.strip())
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
