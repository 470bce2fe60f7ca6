"""Which response decides a request under `strict-002`: the first that came.

The wire contract asks again after a 200 whose envelope is broken; under `strict-002`
that response was the candidate's answer (spec 3.5). What the candidate generated in a
200 that the wire contract refused for another reason was never decoded, so what
`strict-002` would make of it cannot be known from the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from harness.evidence.episode import Attempt

BROKEN_200: Final = frozenset(
    {"envelope_malformed", "multiple_choices", "oversize_body"}
)
"""Details of a 200 that is the candidate's malformed response."""
_HTTP_OK: Final = 200
_DECODED: Final = frozenset({"ok", "candidate_malformed", "truncated"})

FirstResponse = Literal["broken", "undecided", "last"]
"""`last`: the response that decided the request is also the first one."""


def first_response(attempts: Iterable[Attempt]) -> FirstResponse:
    """Tell what the first response of one request was."""
    for attempt in attempts:
        if attempt.http_status != _HTTP_OK:
            continue
        if attempt.detail_code in BROKEN_200:
            return "broken"
        generated = attempt.detail_code == "content_filter_output"
        decided = attempt.wire_class in _DECODED or generated
        return "last" if decided else "undecided"
    return "last"
