"""Names for what is left out of a score instead of ending it.

The original leaves most of these out silently and ends the whole run on some; here
each is counted under its name, and the rest of the run is scored.
"""

from __future__ import annotations

from enum import StrEnum


class CallSkip(StrEnum):
    """Why a tool call, or a streamed piece of one, contributes no command."""

    ARGUMENTS_NOT_JSON = "arguments_not_json"
    ARGUMENTS_NOT_OBJECT = "arguments_not_object"
    ARGUMENTS_INTEGER_TOO_LONG = "arguments_integer_too_long"
    """The original ends the run here."""
    ARGUMENTS_TOO_DEEP = "arguments_too_deep"
    """The original ends the run here."""
    COMMAND_NOT_TEXT = "command_not_text"
    """A truthy `command` or `cmd` of another type, or neither key."""
    DELTA_CHUNK_NOT_ARRAY = "delta_chunk_not_array"
    """The original ends the run here, as at the five below."""
    DELTA_NOT_OBJECT = "delta_not_object"
    DELTA_FUNCTION_NOT_OBJECT = "delta_function_not_object"
    DELTA_INDEX_UNUSABLE = "delta_index_unusable"
    DELTA_INDEX_UNORDERED = "delta_index_unordered"
    """Indexes of one turn that cannot be sorted; those that are no number."""
    DELTA_FRAGMENT_NOT_TEXT = "delta_fragment_not_text"


class LineSkip(StrEnum):
    """Why a line of the event log is not read."""

    NOT_UTF8 = "line_not_utf8"
    """The original ends the run here."""
    NOT_JSON = "line_not_json"
    NUMBER_TOO_LONG = "line_number_too_long"
    TOO_DEEP = "line_too_deep"
    """The original ends the run here."""
    NOT_OBJECT = "line_not_object"
    EVENT_TYPE_NOT_TEXT = "event_type_not_text"
    """The original ends the run here."""
    EVENT_TYPE_ABSENT = "event_type_absent"
    EVENT_TYPE_UNKNOWN = "event_type_unknown"
    FIELD_TYPE = "field_type"
    DATA_TAG_UNKNOWN = "data_tag_unknown"
    OUTPUT_TYPE = "output_type"
