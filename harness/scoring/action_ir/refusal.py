"""Input that cannot be scored at all: an error of the evaluation, never a score.

The reason is one word of this contract, so that a caller can tell refusals apart
without reading text; the code is the row of the cause table.
"""

from __future__ import annotations

from typing import Final

from harness.errors import ScoringError

REASONS: Final = frozenset(
    {
        "invalid_gold",
        "invalid_generation_failure",
        "invalid_confidence",
        "invalid_scenario",
        "invalid_evidence",
        "mixed_evaluator_versions",
        "repeated_sample_id",
        "prediction_id_invalid",
        "duplicate_prediction_id",
        "manifest_id_invalid",
        "duplicate_manifest_id",
        "manifest_prompt_or_target_invalid",
        "manifest_metadata_invalid",
        "missing_prediction_row",
        "prediction_unsupported_fields",
        "prediction_raw_type",
        "truncated_type",
        "generation_failure_type",
        "missing_tools_block",
        "empty_tools_block",
        "invalid_tool_line",
        "duplicate_tool",
        "invalid_argument",
        "duplicate_argument",
        "tool_schema_changed",
        "scenario_invalid",
        "unknown_prediction_id",
    }
)
"""Every reason; the join meets its own in the order from `prediction_id_invalid`."""


class ActionIrError(ScoringError):
    """Gold, evidence or rows from which no score may be made."""

    def __init__(
        self, reason: str, problem: str, *, where: str = "", actual: str = ""
    ) -> None:
        self.reason = reason
        """A member of REASONS."""
        self.problem = problem
        self.detail = actual
        super().__init__(
            "eval_predictions_invalid",
            f"{reason}: {problem}",
            where=where,
            actual=actual,
            recovery="mend the row and score again; nothing was written",
        )
