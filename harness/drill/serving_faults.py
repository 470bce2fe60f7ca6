"""Every fault that the endpoint of the drill can have, with the cell it belongs in.

One row for each rule of `spec/wire-contract.md` A3 and A4 that an endpoint can be
made to break. What lies inside the message lands with the candidate, an answer that
came and is no completion with the provider, an answer that did not come whole with
the transport. Rows of `SUCCESS` look odd and must cost nothing. A cured fault fails
the first attempts of a request only and must end in nothing either.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from harness.candidates.loopback_http import Delivery
from harness.candidates.wire import BODY_CAP_BYTES
from harness.drill import cells, deliveries
from harness.drill.cells import SUCCESS, Cell
from harness.drill.spoilers import (
    Spoil,
    arguments,
    choice,
    envelope,
    first_call,
    message,
    raw,
    repeated_choice,
    status,
    text,
)
from harness.scoring.records import TaskCompanion

DRILL_KEY: Final = "drill-key-0f6b1c52d9"
"""The credential that one fault repeats in a body."""
SLOW_ANSWER_S: Final = 1.9
MIN_SLOW_TURNS: Final = 3
"""Turns after which slow answers have used up an episode's time."""

Place = Literal["any", "call", "text", "every"]
"""Which request is hit: one, one whose gold is calls or is text, or all of a task."""


@dataclass(frozen=True, slots=True)
class ServingFault:
    """One kind of fault at the endpoint."""

    name: str
    cell: Cell
    spoil: Spoil
    place: Place = "any"
    attempts: int | None = None
    """How many attempts of the request fail; None: all of them."""
    mark: TaskCompanion | None = None
    """The companion count that has to rise beside the score."""


def _broken_exchanges() -> list[ServingFault]:
    """A3 row 1: no complete, decodable response in the deadline."""
    cut = deliveries.cut_length
    rows = {
        "closed before the response": raw(lambda _: deliveries.closed()),
        "reset before the response": raw(lambda _: deliveries.reset()),
        "reset in the body": raw(lambda b: deliveries.reset(cut(b))),
        "body shorter than its length": raw(lambda b: deliveries.closed(cut(b))),
        "last chunk missing": raw(lambda b: deliveries.closed(_cut_chunks(b))),
        "half-closed before the response": raw(lambda _: deliveries.half_closed()),
        "half-closed in the head": raw(lambda _: deliveries.half_closed(b"HTTP/1.")),
        "half-closed in the body": raw(lambda b: deliveries.half_closed(cut(b))),
        "gzip stream cut": raw(lambda b: deliveries.exactly(deliveries.cut_gzip(b))),
        "plain body declared as gzip": raw(lambda b: _coded(b, "gzip")),
        "unknown content coding": raw(lambda b: _coded(b, "br")),
        "not HTTP at all": raw(lambda _: deliveries.closed(b"SSH-2.0-drill\r\n\r\n")),
    }
    return [ServingFault(n, cells.TRANSPORT_ERROR, spoil) for n, spoil in rows.items()]


_cut_chunks = deliveries.cut_chunks


def _coded(body: bytes, coding: str) -> Delivery:
    return deliveries.whole(body, 200, {"content-encoding": coding})


def _slow_exchanges() -> list[ServingFault]:
    cut = deliveries.cut_length
    head = deliveries.head
    rows = {
        "hang before the response": raw(lambda _: deliveries.silent()),
        "hang in the body": raw(lambda b: deliveries.silent(cut(b))),
        "slow drip of the head": raw(lambda b: deliveries.dripping(head(200, len(b)))),
        "slow drip of the body": raw(
            lambda b: deliveries.dripping(b, after=head(200, len(b)))
        ),
    }
    slow = [ServingFault(n, cells.TIMEOUT, spoil) for n, spoil in rows.items()]
    late = raw(lambda b: deliveries.late(b, SLOW_ANSWER_S))
    return [
        *slow,
        ServingFault("every answer slow", cells.EPISODE_TIMEOUT, late, "every"),
    ]


def _statuses() -> list[ServingFault]:
    """A3 rows 6, 10 and 13: load, server errors, errors inside a 200."""
    busy = status(429, {"code": "rate_limit_exceeded"}, retry_after="0")
    page = {"content-type": "text/html"}
    html = raw(lambda _: deliveries.whole(b"<html>", 503, page))
    return [
        ServingFault("429 storm", cells.RATE_LIMITED, busy),
        ServingFault(
            "429 inside a 200", cells.RATE_LIMITED, envelope(error={"code": 429})
        ),
        ServingFault("408", cells.TIMEOUT, status(408)),
        ServingFault("503 as a page", cells.UNAVAILABLE, html),
        ServingFault("error inside a 200", cells.UNAVAILABLE, envelope(error="dead")),
        ServingFault("error beside a choice", cells.ABORTED, choice(error={"code": 1})),
        *(
            ServingFault(str(code), cells.UNAVAILABLE, status(code, {"message": "no"}))
            for code in (409, 425, 500, 502, 504, 529)
        ),
        *(
            ServingFault(
                f"finish reason {reason}", cells.ABORTED, choice(finish_reason=reason)
            )
            for reason in (None, "error", "abort", "network_error")
        ),
    ]


def _envelopes() -> list[ServingFault]:
    """A3 rows 9, 11 and 16: a 200 that is no completion."""
    rows = {
        "empty 200": text(b""),
        "page instead of JSON": text(b"<!doctype html>", "text/html"),
        "stream of events": text(b"data: {}\n\ndata: [DONE]\n\n", "text/event-stream"),
        "JSON list": text(b"[]"),
        "NaN in the envelope": raw(lambda b: deliveries.whole(_first(b, b'"x":NaN,'))),
        "key twice in the envelope": raw(
            lambda b: deliveries.whole(_first(b, b'"id":"a",'))
        ),
        "bytes after the envelope": raw(lambda b: deliveries.whole(b + b"{}")),
        "no choices": envelope(choices=None),
        "empty choices": envelope(choices=[]),
        "choice without a message": choice(message=None),
    }
    return [ServingFault(name, cells.ENVELOPE, spoil) for name, spoil in rows.items()]


def _first(body: bytes, field: bytes) -> bytes:
    return b"{" + field + body[1:]


def _refusals() -> list[ServingFault]:
    """What is never retried: the request, the account, the form of the answer."""
    too_long = {"code": "context_length_exceeded"}
    upstream = {"code": 403, "metadata": {"provider_name": "drill"}}
    return [
        ServingFault(
            "429 that outlasts the budget",
            cells.RATE_LIMITED,
            status(429, retry_after="600"),
        ),
        ServingFault("402", cells.QUOTA, status(402)),
        ServingFault(
            "429 out of quota", cells.QUOTA, status(429, {"code": "insufficient_quota"})
        ),
        ServingFault("context overflow", cells.CONTEXT, status(400, too_long)),
        ServingFault("400", cells.REJECTED, status(400, {"message": "no"})),
        ServingFault("404", cells.REJECTED, status(404)),
        ServingFault("501", cells.REJECTED, status(501)),
        ServingFault("redirect", cells.REJECTED, status(302, location="/elsewhere")),
        ServingFault("403 of one upstream", cells.REJECTED, status(403, upstream)),
        ServingFault(
            "prompt refused by a filter",
            cells.PROMPT_FILTER,
            status(400, {"code": "content_filter"}),
        ),
        ServingFault(
            "body over the cap",
            cells.OVERSIZE,
            lambda _: deliveries.silent(deliveries.head(200, BODY_CAP_BYTES + 1)),
        ),
        ServingFault(
            "gzip that unpacks over the cap",
            cells.OVERSIZE,
            lambda _: _coded(_bomb(), "gzip"),
        ),
        ServingFault("two choices", cells.CHOICES, repeated_choice),
        ServingFault(
            "unknown finish reason", cells.FINISH_REASON, choice(finish_reason="paused")
        ),
        ServingFault(
            "key repeated in the body",
            cells.ECHOED_KEY,
            envelope(system_fingerprint=DRILL_KEY),
        ),
    ]


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * (BODY_CAP_BYTES + 1), compresslevel=1, mtime=0)


def _broken_messages() -> list[ServingFault]:
    """A4 and A3 rows 7 and 17 to 19: the candidate's, whatever the server did."""
    failed = {"code": "tool_use_failed", "failed_generation": "<function=x>"}
    anywhere = {
        "tool_calls is no list": message(tool_calls="none"),
        "call in the content": message(content=[{"type": "tool_use", "id": "a"}]),
        "legacy function_call": message(function_call={"name": "a", "arguments": "{}"}),
        "content of no known form": message(content=42),
        "text that is no Unicode": message(content="\ud800"),
        "verdict on the call": choice(finish_reason="MALFORMED_FUNCTION_CALL"),
        "400 with the failed generation": status(400, failed),
    }
    of_calls = {
        "call without a name": first_call(lambda c: {**c, "function": {}}),
        "call of another type": first_call(lambda c: {**c, "type": "custom"}),
    }
    incomplete = {
        "cut at the token limit": choice(finish_reason="length"),
        "output held back by a filter": choice(finish_reason="content_filter"),
        "filter's error inside a 200": envelope(error={"code": "content_filter"}),
    }
    ids = {
        "call id missing": first_call(lambda c: {**c, "id": None}),
        "call id empty": first_call(lambda c: {**c, "id": ""}),
    }
    return [
        *(ServingFault(n, cells.MALFORMED, s) for n, s in anywhere.items()),
        *(ServingFault(n, cells.MALFORMED, s, "call") for n, s in of_calls.items()),
        *(ServingFault(n, cells.INCOMPLETE, s) for n, s in incomplete.items()),
        *(ServingFault(n, cells.BAD_IDS, s, "call") for n, s in ids.items()),
    ]


def _broken_arguments() -> list[ServingFault]:
    """Arguments that are not one strict JSON object, and a call left in the text."""
    rows: list[tuple[str, Spoil, TaskCompanion | None]] = [
        ("arguments cut", arguments(lambda t: t[:-1]), "suspected_truncation"),
        ("arguments empty", arguments(lambda _: ""), "arguments_empty"),
        ("arguments missing", arguments(lambda _: None), None),
        ("arguments as an object", arguments(lambda _: {}), None),
        ("arguments as a list", arguments(lambda _: "[]"), None),
        ("arguments in a fence", arguments(lambda t: f"```{t}```"), None),
        (
            "call left in the text",
            message(content="<tool_call>{}</tool_call>", tool_calls=None),
            "serving_parse_loss",
        ),
    ]
    return [
        ServingFault(name, cells.MISMATCH, spoil, "call", mark=mark)
        for name, spoil, mark in rows
    ]


def _oddities() -> list[ServingFault]:
    """What looks wrong, is within the contract, and must cost nothing."""
    blanks = raw(lambda b: deliveries.whole(b"\r\n \n" + b))
    mark = b"\xef\xbb\xbf"
    parts = [{"type": "text", "text": "All"}, {"type": "text", "text": " done."}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1 << 20}
    return [
        ServingFault("blank lines before the body", SUCCESS, blanks),
        ServingFault(
            "byte-order mark", SUCCESS, raw(lambda b: deliveries.whole(mark + b))
        ),
        ServingFault(
            "gzip, whole", SUCCESS, raw(lambda b: deliveries.exactly(_in_gzip(b)))
        ),
        ServingFault(
            "chunks, whole", SUCCESS, raw(lambda b: deliveries.exactly(_in_chunks(b)))
        ),
        ServingFault("text in parts", SUCCESS, message(content=parts), "text"),
        ServingFault(
            "markup in an answer",
            SUCCESS,
            message(content="Done. <tool_call>{}</tool_call>"),
            "text",
            mark="suspected_call_markup",
        ),
        ServingFault(
            "as many tokens as were allowed",
            SUCCESS,
            envelope(usage=usage),
            mark="suspected_truncation",
        ),
    ]


_in_gzip = deliveries.in_gzip
_in_chunks = deliveries.in_chunks


def _cured(faults: list[ServingFault]) -> list[ServingFault]:
    """Return each fault again so that it ends before the attempts do."""
    counts = ("once", "twice")
    return [
        replace(
            fault,
            name=f"{fault.name}, {counts[index % 2]}",
            cell=SUCCESS,
            attempts=index % 2 + 1,
        )
        for index, fault in enumerate(faults)
    ]


def serving_faults() -> tuple[ServingFault, ...]:
    """Return every kind, in a fixed order."""
    curable = [*_broken_exchanges(), *_statuses(), *_envelopes()]
    return (
        *curable,
        *_cured(curable),
        *_slow_exchanges(),
        *_refusals(),
        *_broken_messages(),
        *_broken_arguments(),
        *_oddities(),
    )
