"""One line of an event log: what it tells the scorer, or why it is not read.

Only three kinds matter here: a turn was issued, a turn was completed, an error was
met. A line that the log's format does not allow is skipped under a name, and what it
said about a turn is lost with it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from harness.canonical import Json
from harness.scoring.mlperf_agentic.model_output import (
    ModelOutput,
    OutputTypeError,
    model_output,
)
from harness.scoring.mlperf_agentic.python_json import (
    IntegerTooLongError,
    NotJsonError,
    TooDeepError,
    decode_line,
)
from harness.scoring.mlperf_agentic.skips import LineSkip


class EventKind(Enum):
    """What an event is to the scorer."""

    ISSUED = "issued"
    COMPLETE = "complete"
    ERROR = "error"
    OTHER = "other"


class Event(NamedTuple):
    """One readable line."""

    kind: EventKind
    sample_uuid: str
    conversation_id: str
    turn: int | None
    output: ModelOutput | None
    """Of a completion; None where the model gave nothing."""
    error_type: str | None
    """The class name that an error record carries."""


class SkippedLineError(ValueError):
    """The line is not read; `reason` names why."""

    def __init__(self, reason: LineSkip) -> None:
        self.reason = reason
        super().__init__(reason.value)


EVENT_KINDS: Final[dict[str, EventKind]] = {
    "sample.issued": EventKind.ISSUED,
    "sample.complete": EventKind.COMPLETE,
    **{
        f"error.{name}": EventKind.ERROR
        for name in ("generic", "loadgen", "session", "client")
    },
    **{f"sample.{name}": EventKind.OTHER for name in ("recv_first", "recv_non_first")},
    **{
        f"session.{name}": EventKind.OTHER
        for name in (
            "started",
            "ended",
            "stop_loadgen",
            "start_performance_tracking",
            "stop_performance_tracking",
        )
    },
}
"""Every event name that the format knows."""
OUTPUT_TAG: Final = "TextModelOutput"
ERROR_TAG: Final = "ErrorData"
TAGS: Final = frozenset({OUTPUT_TAG, ERROR_TAG, "PromptData"})
_NULL: Final = type(None)
_INTEGER_OR_NULL: Final = frozenset({int, _NULL})
"""Without bool, which is an int to Python and none to JSON."""
_TEXT_OR_NULL: Final = frozenset({str, _NULL})
_NAME_OR_NULL: Final = frozenset({str, int, _NULL})
_SHOWN_TYPE: Final = 80
"""Characters of an error's type that are kept."""


def read_event(line: str) -> Event:
    """Read one line, blanks around it removed; raise SkippedLineError."""
    record = _record(line)
    kind = _kind(record)
    uuid = record.get("sample_uuid", "")
    conversation_id = record.get("conversation_id", "")
    turn = record.get("turn")
    if (
        type(uuid) is not str
        or type(conversation_id) is not str
        or type(turn) not in _INTEGER_OR_NULL
        or type(record.get("timestamp_ns", 0)) is not int
        or type(record.get("finish_reason")) not in _TEXT_OR_NULL
        or type(record.get("worker_id")) not in _NAME_OR_NULL
    ):
        raise SkippedLineError(LineSkip.FIELD_TYPE)
    data = record.get("data")
    if data is None:
        return Event(kind, uuid, conversation_id, turn, None, None)
    tag = _tag(data)
    output = _output(data) if tag == OUTPUT_TAG else None
    error_type = _error_type(data) if tag == ERROR_TAG else None
    return Event(kind, uuid, conversation_id, turn, output, error_type)


def _record(line: str) -> dict[str, Json]:
    try:
        record = decode_line(line)
    except NotJsonError:
        raise SkippedLineError(LineSkip.NOT_JSON) from None
    except IntegerTooLongError:
        raise SkippedLineError(LineSkip.NUMBER_TOO_LONG) from None
    except TooDeepError:
        raise SkippedLineError(LineSkip.TOO_DEEP) from None
    if not isinstance(record, dict):
        raise SkippedLineError(LineSkip.NOT_OBJECT)
    return record


def _kind(record: dict[str, Json]) -> EventKind:
    if "event_type" not in record:
        raise SkippedLineError(LineSkip.EVENT_TYPE_ABSENT)
    name = record["event_type"]
    if not isinstance(name, str):
        raise SkippedLineError(LineSkip.EVENT_TYPE_NOT_TEXT)
    kind = EVENT_KINDS.get(name)
    if kind is None:
        raise SkippedLineError(LineSkip.EVENT_TYPE_UNKNOWN)
    return kind


def _tag(data: Json) -> str:
    if not isinstance(data, list):
        raise SkippedLineError(LineSkip.FIELD_TYPE)
    tag = data[0] if data else None
    if not isinstance(tag, str) or tag not in TAGS:
        raise SkippedLineError(LineSkip.DATA_TAG_UNKNOWN)
    return tag


def _output(data: list[Json]) -> ModelOutput:
    try:
        return model_output(data[1:4])
    except OutputTypeError:
        raise SkippedLineError(LineSkip.OUTPUT_TYPE) from None


def _error_type(data: list[Json]) -> str | None:
    name = data[1] if len(data) > 1 else None
    return name[:_SHOWN_TYPE] if isinstance(name, str) else None
