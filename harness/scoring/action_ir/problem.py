"""Why a text is no action: one code, one place, first problem only.

A problem is a verdict on a prediction and never an error of the program. The parse
stage ends with a JSON object or not at all; the schema stage judges that object
against the declared tools.
"""

from __future__ import annotations

from typing import Final, Literal

Stage = Literal["parse", "schema"]

PARSE_CODES: Final = frozenset(
    {
        "invalid_json",
        "duplicate_key",
        "non_finite_number",
        "invalid_utf8",
        "max_nesting_exceeded",
        "top_level_not_object",
        "type_mismatch",
    }
)
"""Every code of the parse stage."""
SCHEMA_CODES: Final = frozenset(
    {
        "type_mismatch",
        "invalid_decision",
        "missing_field",
        "unknown_field",
        "empty_missing",
        "empty_missing_item",
        "duplicate_missing",
        "unsorted_missing",
        "invalid_mode",
        "empty_calls",
        "invalid_call_count",
        "unknown_tool",
        "missing_argument",
        "extra_argument",
        "enum_mismatch",
        "non_finite_number",
    }
)
"""Every code of the schema stage."""


class InvalidActionError(ValueError):
    """The first thing that keeps a text from being an action."""

    def __init__(self, stage: Stage, code: str, path: str, detail: str) -> None:
        self.stage: Stage = stage
        self.code = code
        self.path = path
        """`$`, then `.name` and `[index]` steps."""
        self.detail = detail
        super().__init__(f"{stage} {code} at {path}: {detail}")
