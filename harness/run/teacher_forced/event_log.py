"""`events.jsonl` and `sample_idx_map.json`, made from the evidence.

The original writes its log while it asks; here it follows from what was recorded, so
that it can be made again. Turns stand in the order of their passes: an issue, an error
where there was one, a completion. A turn without an answer is completed with null, and
so is every turn that was given up after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from harness.canonical import Json, canonical_bytes
from harness.predictions.mlperf_agentic import DATASET_NAME
from harness.run.teacher_forced.answers import output_data
from harness.run.teacher_forced.recorded import RecordedTurn
from harness.scoring.mlperf_agentic.events import ERROR_TAG

_NS: Final = 1_000_000_000
GIVEN_UP: Final = "TurnAbortedByPriorFailure"
"""The original's name for a turn that was not sent for an earlier one failed."""
_ERROR_TYPES: Final = {
    "timeout": "TurnTimeout",
    "transport_error": "ConnectionError",
}
"""Names of the original and of common clients; any other end is the server's."""


def event_lines(turns: Iterable[RecordedTurn]) -> Iterator[bytes]:
    """Yield the lines of the event log."""
    ended = over = 0
    current: str | None = None
    for turn in turns:
        if turn.part.conversation_id != current:
            current, over = turn.part.conversation_id, 0
        # Records tell milliseconds, so a turn may seem to begin before its turn.
        issued, completed = (max(over, moment) for moment in _times(turn))
        over = completed
        if not ended:
            yield _line("session.started", issued)
        ended = max(ended, completed)
        yield from _turn_lines(turn, issued, completed)
    yield _line("session.ended", ended)


def index_map_pieces(uuids: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the map from samples to the data set's turns, in pieces."""
    yield b"{" + canonical_bytes(DATASET_NAME) + b":{"
    comma = b""
    for uuid, index in uuids:
        yield b'%b"%b":%d' % (comma, uuid.encode("ascii"), index)
        comma = b","
    yield b"}}\n"


def sample_uuid(request_hash: str) -> str:
    """Return the id that joins a turn's events: the head of its request's hash."""
    return request_hash.removeprefix("sha256:")[:32]


def error_type(turn: RecordedTurn) -> str:
    """Return the name of an unanswered turn's error in the log."""
    if turn.given_up_after is not None:
        return GIVEN_UP
    detail = turn.outcome.detail_code or "timeout"
    named = "".join(word.capitalize() for word in detail.split("_"))
    return _ERROR_TYPES.get(detail, f"{named}ServerError")


def _turn_lines(turn: RecordedTurn, issued: int, completed: int) -> Iterator[bytes]:
    yield _line("sample.issued", issued, turn)
    cause, response = turn.cause, turn.outcome.response
    if cause is None:
        yield _line(
            "sample.complete",
            completed,
            turn,
            output_data(response),
            None if response is None else response.finish_reason,
        )
        return
    words = cause.summary
    if turn.given_up_after is not None:
        words = f"not sent: turn {turn.given_up_after} failed. {words}"
    error = [ERROR_TAG, error_type(turn), words]
    yield _line("error.generic", completed, turn, error)
    yield _line("sample.complete", completed, turn)


def _times(turn: RecordedTurn) -> tuple[int, int]:
    """Return when a turn was issued and when it was over, in nanoseconds."""
    first, last = turn.attempts[0], turn.attempts[-1]
    over = _nanoseconds(last.observed_at) + round(last.latency_s * _NS)
    issued = _nanoseconds(first.observed_at)
    return (issued if turn.given_up_after is None else over), over


def _nanoseconds(moment: str) -> int:
    found = datetime.fromisoformat(moment)
    return int(found.timestamp()) * _NS + found.microsecond * 1000


def _line(
    name: str,
    timestamp_ns: int,
    turn: RecordedTurn | None = None,
    data: Json = None,
    finish_reason: str | None = None,
) -> bytes:
    event: dict[str, Json] = {
        "event_type": name,
        "timestamp_ns": timestamp_ns,
        "sample_uuid": "" if turn is None else sample_uuid(turn.request.request_hash),
        "conversation_id": "" if turn is None else turn.part.conversation_id,
        "turn": None if turn is None else turn.turn.client_turn,
        "data": data,
    }
    if finish_reason is not None:
        event["finish_reason"] = finish_reason
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8") + b"\n"
