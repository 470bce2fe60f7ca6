"""Lines of the log: what is read, and the name of what is not."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic.events import (
    EventKind,
    SkippedLineError,
    read_event,
)
from harness.scoring.mlperf_agentic.skips import LineSkip
from tests.scoring.mlperf_agentic.test_actions import json_values

WHOLE = {
    "event_type": "sample.complete",
    "timestamp_ns": 5,
    "sample_uuid": "u",
    "conversation_id": "c",
    "turn": 1,
    "data": ["TextModelOutput", "text", None, None],
}


def line(**changes):
    return json.dumps({**WHOLE, **changes})


def test_completion_with_an_output():
    found = read_event(line(finish_reason="stop", worker_id=3, extra=[1]))

    assert found == (EventKind.COMPLETE, "u", "c", 1, ("text", None, None), None)


@pytest.mark.parametrize("data", [None, ["PromptData", 5], ["ErrorData", "X", "y"]])
def test_other_data_is_no_output(data):
    assert read_event(line(data=data)).output is None


def test_error_record_has_its_type():
    found = read_event(line(event_type="error.client", data=["ErrorData", "X" * 200]))

    assert (found.kind, found.error_type) == (EventKind.ERROR, "X" * 80)


def test_only_the_name_of_the_event_is_required():
    found = read_event('{"event_type":"session.started"}')

    assert found == (EventKind.OTHER, "", "", None, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", LineSkip.NOT_JSON),
        (line()[:-9], LineSkip.NOT_JSON),
        ("\ufeff" + line(), LineSkip.NOT_JSON),
        (line(data=["TextModelOutput", "\ud800"]), LineSkip.NOT_JSON),
        ('{"x":' + "9" * 4301 + "}", LineSkip.NUMBER_TOO_LONG),
        ('{"x":' + "[" * 5000 + "]" * 5000 + "}", LineSkip.TOO_DEEP),
        ("[]", LineSkip.NOT_OBJECT),
        ("{}", LineSkip.EVENT_TYPE_ABSENT),
        (line(event_type=5), LineSkip.EVENT_TYPE_NOT_TEXT),
        (line(event_type=None), LineSkip.EVENT_TYPE_NOT_TEXT),
        (line(event_type=["sample.issued"]), LineSkip.EVENT_TYPE_NOT_TEXT),
        (line(event_type="session.nope"), LineSkip.EVENT_TYPE_UNKNOWN),
        (line(event_type="a.b.c"), LineSkip.EVENT_TYPE_UNKNOWN),
        (line(turn="1"), LineSkip.FIELD_TYPE),
        (line(turn=1.0), LineSkip.FIELD_TYPE),
        (line(turn=True), LineSkip.FIELD_TYPE),
        (line(timestamp_ns=None), LineSkip.FIELD_TYPE),
        (line(sample_uuid=None), LineSkip.FIELD_TYPE),
        (line(conversation_id=7), LineSkip.FIELD_TYPE),
        (line(finish_reason=7), LineSkip.FIELD_TYPE),
        (line(worker_id=[]), LineSkip.FIELD_TYPE),
        (line(data="x"), LineSkip.FIELD_TYPE),
        (line(data={}), LineSkip.FIELD_TYPE),
        (line(data=[]), LineSkip.DATA_TAG_UNKNOWN),
        (line(data=["Text"]), LineSkip.DATA_TAG_UNKNOWN),
        (line(data=[["TextModelOutput"]]), LineSkip.DATA_TAG_UNKNOWN),
        (line(data=["TextModelOutput", None]), LineSkip.OUTPUT_TYPE),
        (line(data=["TextModelOutput", "", 5]), LineSkip.OUTPUT_TYPE),
        (line(data=["TextModelOutput", "", None, "x"]), LineSkip.OUTPUT_TYPE),
    ],
)
def test_line_is_skipped_under_a_name(text, reason):
    with pytest.raises(SkippedLineError) as skipped:
        read_event(text)

    assert skipped.value.reason is reason


fields = st.fixed_dictionaries({}, optional=dict.fromkeys(WHOLE, json_values))


@given(fields | json_values, st.text(max_size=5))
def test_no_line_is_an_error(changes, tail):
    changes = changes if isinstance(changes, dict) else {"data": changes}
    for text in (line(**changes), line(**changes) + tail, tail):
        with suppress(SkippedLineError):
            read_event(text)
