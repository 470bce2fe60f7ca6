"""What JSON records and classification share: rows of answers, shares, the choice.

A row holds gold and the text that a candidate gave, or None where inference failed.
Every row of the plan is in every denominator. A cut generation (`finish_reason`
`length`) is counted and scored as it stands. A share of no rows is None, never 0.
How two answers compare is not shared: each contract has its own rule and version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.canonical import Json
from harness.errors import ScoringError, UsageError

TRUNCATED: Final = "length"
"""The finish reason of a generation that met its cap of tokens."""

SELECTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "classification": ("accuracy", "macro_f1"),
    "json": (
        "whole_record_accuracy",
        "mean_field_accuracy",
        "schema_valid_rate",
        "parseable_rate",
    ),
    "action-ir": (
        "policy_safe_executable_success",
        "ast_exact_match",
        "parse_valid",
        "schema_valid",
        "decision_accuracy",
        "tool_macro_f1",
        "argument_key_macro_f1",
        "argument_value_macro_f1",
    ),
    "mlperf-agentic": ("score", "answered_only_score"),
    "executable": (
        "task_success_rate",
        "task_success_rate_without_stops",
        "turn_success_rate",
        "tool_name_accuracy",
        "argument_accuracy",
        "call_group_accuracy",
        "call_order_accuracy",
        "required_call_subset_accuracy",
        "milestone_accuracy",
        "tool_execution_success_rate",
        "assertion_success_rate",
        "state_match_rate",
        "final_answer_success_rate",
        "path_success_rate",
        "schema_valid_rate",
    ),
    "trace": (
        "task_success_rate",
        "task_success_rate_without_stops",
        "tool_selection_pass_rate",
        "arguments_pass_rate",
        "schema_valid_pass_rate",
        "call_grouping_pass_rate",
        "call_ordering_pass_rate",
        "text_turn_pass_rate",
        "trace_completion_pass_rate",
    ),
}
"""The metrics that may be the primary one, by task; the first is the default."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One planned row and what came back for it."""

    id: str
    gold: Json
    raw: Json
    """The text as it was received; None where there is no output."""
    finish_reason: str | None

    @property
    def is_failed(self) -> bool:
        """Tell whether inference gave nothing."""
        return self.raw is None

    @property
    def is_text(self) -> bool:
        """Tell whether the output is text; anything else can be right in no way."""
        return isinstance(self.raw, str)

    @property
    def is_truncated(self) -> bool:
        """Tell whether the generation met its cap."""
        return self.finish_reason == TRUNCATED


class AnswerRowError(ScoringError):
    """Rows from which no score may be made."""

    def __init__(self, problem: str, *, where: str, expected: str, actual: str) -> None:
        super().__init__(
            "eval_predictions_invalid",
            problem,
            where=where,
            expected=expected,
            actual=actual,
            recovery="mend the row and score again; nothing was written",
        )


def answer_row(
    payload: Mapping[str, Json], gold_type: type, *, where: str
) -> AnswerRow:
    """Build a row from its object; other members are ignored.

    `finish_reason` may be absent, `raw` may not: a row without it does not say
    whether inference failed. Raises AnswerRowError.
    """
    reason = payload.get("finish_reason")
    if (
        "raw" in payload
        and isinstance(payload.get("id"), str)
        and isinstance(payload.get("gold"), gold_type)
        and isinstance(reason, str | None)
    ):
        return AnswerRow(payload["id"], payload["gold"], payload["raw"], reason)
    raise _row_problem(payload, gold_type, where)


def _row_problem(
    payload: Mapping[str, Json], gold_type: type, where: str
) -> AnswerRowError:
    absent = [name for name in ("id", "gold", "raw") if name not in payload]
    if absent:
        return AnswerRowError(
            f"a row is without {', '.join(absent)}",
            where=where,
            expected="id, gold, raw (null for a failed inference), finish_reason",
            actual=f"members {sorted(payload)}",
        )
    name, expected = "finish_reason", "a string or null"
    if not isinstance(payload["id"], str):
        name, expected = "id", "a string that is not empty"
    elif not isinstance(payload["gold"], gold_type):
        name, expected = "gold", f"a JSON {_JSON_NAMES[gold_type]}"
    return AnswerRowError(
        f"{name} of a row has another form",
        where=where,
        expected=expected,
        actual=f"a JSON {_JSON_NAMES[type(payload[name])]}",
    )


class RowIds:
    """The ids seen so far: each names one row."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def add(self, row: AnswerRow, *, where: str) -> None:
        """Take one row in; raise AnswerRowError for an id that is empty or repeats."""
        if not row.id or row.id in self._seen:
            raise AnswerRowError(
                "an id is empty or names two rows",
                where=where,
                expected="ids that name one row each",
                actual=repr(row.id),
            )
        self._seen.add(row.id)


def share(part: int, whole: int) -> float | None:
    """Divide two counts; None where there is nothing to divide by."""
    return part / whole if whole else None


def primary_metric(task: str, name: str | None = None) -> str:
    """Return the metric that a result is ranked by.

    Raises UsageError (`eval_cli_invalid`) for one that the task does not have.
    """
    offered = SELECTABLE.get(task, ())
    chosen = name or next(iter(offered), "")
    if chosen in offered:
        return chosen
    raise UsageError(
        "eval_cli_invalid",
        f"{chosen!r} is not supported for the {task} task",
        where="--metric",
        expected=f"choose from {', '.join(offered)}",
        actual=repr(chosen),
        recovery="give --metric one of these names, or leave it out",
    )


_JSON_NAMES: Final[Mapping[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
