"""The evaluation record of a run over recorded conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.canonical import Json
from harness.config.teacher_forced import TeacherForcedConfig
from harness.evaluations.conditions import UNKNOWN
from harness.evaluations.contracts import (
    contract_fields,
    metric_fields,
    mlperf_metrics,
    scorer_versions,
)
from harness.evaluations.of_files import TEACHER_FORCED, recorded_rows
from harness.evaluations.protocol import Protocol
from harness.evaluations.record import RecordInputs, Subject, build_record
from harness.evaluations.rows import RowsDigest
from harness.predictions.mlperf_agentic import SCORES, ScoredEvents
from harness.run.record import endpoint_conditions
from harness.scoring.aggregate import STOPS_OVER_CAP
from harness.scoring.answers import SELECTABLE

_CONTRACT: Final = "mlperf-agentic"
_NOT_ASKED: Final = ("repeats", "inject_tool_delay", "inter_turn_delay_s")
"""Settings of asking that no message holds."""


def turns_record(
    config: TeacherForcedConfig,
    scored: ScoredEvents,
    report: Mapping[str, Json],
    artifacts: Mapping[str, str],
) -> dict[str, Json]:
    """Return the payload of `eval_record.json`.

    `artifacts` has the content hash of every file of the result by its name.
    """
    meaning = config.model_dump(mode="json")
    metric = SELECTABLE[_CONTRACT][0]
    return build_record(
        RecordInputs(
            kind="mlperf-agentic",
            task=_CONTRACT,
            protocol=_protocol(config, scored, meaning, metric),
            scorer=scorer_versions(_CONTRACT),
            subjects=[_subject(config, scored, meaning, report)],
            artifacts=artifacts,
            metric=metric,
            details={
                "eval_config_hash": report["eval_config_hash"],
                "publication_allowed": report["publication_allowed"],
                "non_publication_reasons": report["non_publication_reasons"],
            },
        )
    )


def _protocol(
    config: TeacherForcedConfig,
    scored: ScoredEvents,
    meaning: Mapping[str, Json],
    metric: str,
) -> Protocol:
    digest = RowsDigest(inputs=False)
    for turn in scored.run.log.recorded.turns:
        digest.add([turn.source_id, turn.client_turn], list(turn.truth.names))
    asking, limits = meaning["asking"], meaning["limits"]
    (section,) = meaning["candidates"]
    return Protocol(
        rows=recorded_rows(digest, config.dataset.content_hash),
        prompts={
            **{name: asking[name] for name in asking if name not in _NOT_ASKED},
            "echo_reasoning": section["echo_reasoning"],
        },
        decoding=section["inference"],
        metric=metric_fields(_CONTRACT, metric),
        contract=contract_fields(_CONTRACT, None),
        plan={"repeats": asking["repeats"]},
        scope=TEACHER_FORCED,
        other={
            "candidate_timeout_s": limits["candidate_timeout_s"],
            "inject_tool_delay": asking["inject_tool_delay"],
            "inter_turn_delay_s": asking["inter_turn_delay_s"],
            "max_stop_share": meaning["publication"]["max_stop_share"],
        },
    )


def _subject(
    config: TeacherForcedConfig,
    scored: ScoredEvents,
    meaning: Mapping[str, Json],
    report: Mapping[str, Json],
) -> Subject:
    summary, candidate = scored.summary(), config.candidate
    (section,) = meaning["candidates"]
    inference: dict[str, Json] = dict(section["inference"])
    asked = report["asked"]
    figures = mlperf_metrics(summary.head, summary.diagnostics)
    over_cap = STOPS_OVER_CAP in report["non_publication_reasons"]
    return Subject(
        candidate.alias,
        "candidate",
        {"identity": candidate.canonical_id, "requested_model": candidate.model},
        metrics=figures["metrics"],
        conditions=endpoint_conditions(
            section,
            {
                "model_identity": candidate.canonical_id,
                "max_in_flight": meaning["limits"]["max_parallel_conversations"],
            },
            asked["served_by"],
            asked["turns"]["planned"],
        ),
        requested=inference,
        applied=dict.fromkeys(inference, UNKNOWN),
        counts={**figures["counts"], "asked": asked["turns"]},
        samples=SCORES,
        withheld=STOPS_OVER_CAP if over_cap else None,
    )
