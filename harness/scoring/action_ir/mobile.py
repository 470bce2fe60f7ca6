"""The Mobile Actions adapter: manifest rows and prediction rows, joined and scored.

Every check has its place: all prediction ids, then the manifest row by row, unknown
prediction ids last. The first problem ends the scoring, for a set with one wrong row
has no aggregate. There is no simulator here: a predicted CALL counts as executed, and
as successful exactly when it equals gold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NoReturn, TypeGuard

from harness.canonical import Json
from harness.scoring.action_ir.action import Action
from harness.scoring.action_ir.aggregate import Aggregator
from harness.scoring.action_ir.evidence import ExecutionEvidence
from harness.scoring.action_ir.refusal import ActionIrError
from harness.scoring.action_ir.sample import UNSPECIFIED, SampleScore, score_sample
from harness.scoring.action_ir.tools import Tool, ToolSet
from harness.scoring.action_ir.tools_block import ToolsBlockReader

SCORER_VERSION: Final = "barun-mobile-actions-score-v1"
PREDICTION_FIELDS: Final = frozenset(
    {
        "id",
        "prediction_raw",
        "truncated",
        "generation_failure",
        "prompt_tokens",
        "generated_tokens",
    }
)
"""All that a prediction row may hold; the token counts are never looked at."""

_EQUAL: Final = ExecutionEvidence(True, True, True)
_DIFFERENT: Final = ExecutionEvidence(
    authorized_action_sequence=False,
    reached_allowed_final_state=False,
    no_extra_or_unauthorized_calls=False,
    failure_categories=("mobile_actions_ast_mismatch",),
)

Row = Mapping[str, Json]


def equals_gold(prediction: Action, gold: Action) -> ExecutionEvidence:
    """Stand in for a simulator: success exactly when the action equals gold."""
    return _EQUAL if prediction.text == gold.text else _DIFFERENT


class MobileScorer:
    """Scores manifest rows against predictions that are known beforehand."""

    def __init__(self, predictions: Iterable[Row]) -> None:
        self._predictions = _by_id(predictions)
        self._tools: dict[str, Tool] = {}
        self._blocks = ToolsBlockReader()
        self._aggregator = Aggregator()

    def scores(self, manifest: Iterable[Row]) -> Iterator[SampleScore]:
        """Yield one score a manifest row; raise ActionIrError for the first problem."""
        seen: set[str] = set()
        for row in manifest:
            sample_id = row.get("id")
            if not _is_name(sample_id):
                _refuse("manifest_id_invalid", "an id is non-empty text", sample_id)
            if sample_id in seen:
                _refuse("duplicate_manifest_id", "an id stands twice", sample_id)
            seen.add(sample_id)
            try:
                score = self._score(sample_id, row)
            except ActionIrError as error:
                raise _located(error, sample_id) from error
            self._aggregator.add(score)
            yield score
        unknown = sorted(self._predictions.keys() - seen)
        if unknown:
            _refuse(
                "unknown_prediction_id", "predictions without a manifest row", unknown
            )

    def aggregate(self) -> dict[str, Json]:
        """Return the aggregate of all rows that were scored."""
        return {"schema_version": SCORER_VERSION, **self._aggregator.result()}

    def _score(self, sample_id: str, row: Row) -> SampleScore:
        prompt, target = row.get("prompt"), row.get("target")
        if not isinstance(prompt, str) or not isinstance(target, str):
            _refuse("manifest_prompt_or_target_invalid", "prompt and target are text")
        metadata = row.get("metadata", {})
        if not isinstance(metadata, dict):
            _refuse("manifest_metadata_invalid", "metadata is an object", metadata)
        prediction = self._predictions.get(sample_id)
        if prediction is None:
            _refuse("missing_prediction_row", "no prediction row has this id")
        _check_prediction(prediction)
        tools = self._read_tools(prompt)
        return score_sample(
            sample_id,
            gold=target,
            tools=tools,
            prediction_raw=prediction.get("prediction_raw"),
            scenario=_scenario(metadata),
            truncated=prediction.get("truncated", False),
            generation_failure=prediction.get("generation_failure"),
            hook=equals_gold,
        )

    def _read_tools(self, prompt: str) -> ToolSet:
        tools = self._blocks.read(prompt)
        for name, tool in tools.items():
            known = self._tools.setdefault(name, tool)
            if known is not tool and known != tool:
                _refuse(
                    "tool_schema_changed",
                    "one tool has two schemas in one manifest",
                    name,
                )
        return tools


def score_rows(
    manifest: Iterable[Row], predictions: Iterable[Row]
) -> tuple[list[SampleScore], dict[str, Json]]:
    """Score rows in memory; return the sample scores and the aggregate.

    Raises ActionIrError for the first problem.
    """
    scorer = MobileScorer(predictions)
    scores = list(scorer.scores(manifest))
    return scores, scorer.aggregate()


def _by_id(predictions: Iterable[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in predictions:
        sample_id = row.get("id")
        if not _is_name(sample_id):
            _refuse("prediction_id_invalid", "an id is non-empty text", sample_id)
        if sample_id in found:
            _refuse("duplicate_prediction_id", "an id stands twice", sample_id)
        found[sample_id] = row
    return found


def _check_prediction(row: Row) -> None:
    unsupported = row.keys() - PREDICTION_FIELDS
    if unsupported:
        _refuse("prediction_unsupported_fields", "unknown fields", sorted(unsupported))
    raw = row.get("prediction_raw")
    if raw is not None and not isinstance(raw, str):
        _refuse("prediction_raw_type", "prediction_raw is text or null", raw)
    truncated = row.get("truncated", False)
    if not isinstance(truncated, bool):
        _refuse("truncated_type", "truncated is true or false", truncated)
    failure = row.get("generation_failure")
    if failure is not None and not isinstance(failure, str):
        _refuse("generation_failure_type", "a failure code is text or null", failure)


def _scenario(metadata: Mapping[str, Json]) -> str:
    names = metadata.get("call_names")
    if not isinstance(names, list) or not names:
        return UNSPECIFIED
    if not _is_name(names[0]):
        _refuse("scenario_invalid", "metadata.call_names holds names", names[0])
    return names[0]


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _refuse(reason: str, problem: str, seen: Json = None) -> NoReturn:
    raise ActionIrError(reason, problem, actual="" if seen is None else repr(seen))


def _located(error: ActionIrError, sample_id: str) -> ActionIrError:
    if error.violations[0].where:
        return error
    return ActionIrError(
        error.reason, error.problem, where=f"row {sample_id}", actual=error.detail
    )
