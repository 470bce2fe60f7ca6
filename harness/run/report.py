"""`eval_report.json`: what one run says, built from aggregates and the plan alone.

Nothing here reads a clock or a file, so a replay builds the same report. Rates stand
beside their counts; a run over its cap of stops keeps counts and rates and is marked
not publishable (`spec/executable-evaluator.md` 3.16, `design/interfaces.md` 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness.canonical import Json, content_hash, is_content_hash
from harness.evidence.plan_file import PlanHeader
from harness.run.score import ScoredCandidate
from harness.scoring.aggregate import (
    STOPS_OVER_CAP,
    stop_share_exceeded,
)
from harness.scoring.failures import ERROR_TAXONOMY_HASH
from harness.scoring.rescorable import rescorability

REPORT_VERSION: Final = "1.0"


def build_report(
    header: PlanHeader,
    scored: Sequence[ScoredCandidate],
    *,
    max_stop_share: float,
    taxonomy_hash: str = ERROR_TAXONOMY_HASH,
) -> dict[str, Json]:
    """Return the payload of `eval_report.json`.

    `taxonomy_hash` is that of the version that wrote the run: one more cause in the
    table changes no score, so it is cited as the run cites it.
    """
    facts = header.facts
    reasons = list(facts["non_publication_reasons"])
    over_cap = any(stop_share_exceeded(one.aggregate, max_stop_share) for one in scored)
    if over_cap:
        reasons.append(STOPS_OVER_CAP)
    return {
        "schema_version": REPORT_VERSION,
        "eval_run_id": facts["eval_run_id"],
        "eval_scope": header.scope,
        "source_run_id": header.source_run_id,
        "eval_config_hash": header.eval_config_hash,
        "scoring_policy_hash": header.scoring_policy_hash,
        "error_taxonomy_hash": taxonomy_hash,
        "plan_identity": header.plan_identity,
        "source_verification_identity": header.source_verification_identity,
        "comparison_set": _comparison_set(facts["comparison_set"], scored),
        "candidates": [_candidate(one) for one in scored],
        "contamination_violations": facts["contamination_violations"],
        "publication_allowed": facts["publication_allowed"] and not over_cap,
        "non_publication_reasons": reasons,
        "rescorable": rescorability(header.scope),
    }


def cited_taxonomy(manifest: Mapping[str, Json]) -> str:
    """Return the taxonomy that a run's manifest cites; ours where it cites none."""
    stated = manifest.get("error_taxonomy_hash")
    return str(stated) if is_content_hash(stated) else ERROR_TAXONOMY_HASH


def _comparison_set(policy: str, scored: Sequence[ScoredCandidate]) -> dict[str, Json]:
    """Describe the tasks that all candidates share."""
    first = scored[0].aggregate.task_ids
    shared = set(first).intersection(*(one.aggregate.task_ids for one in scored))
    common = [task_id for task_id in first if task_id in shared]
    return {
        "policy": policy,
        "task_count": len(common),
        "task_ids_hash": content_hash(common),
    }


def _candidate(one: ScoredCandidate) -> dict[str, Json]:
    aggregate = one.aggregate
    return {
        "alias": aggregate.candidate_alias,
        "scope": aggregate.scope,
        "canonical_id": aggregate.canonical_model_identity,
        "aggregate_hash": aggregate.aggregate_hash,
        "task_ids_hash": aggregate.task_ids_hash,
        "task_count": aggregate.task_count,
        "trials": aggregate.trials,
        "successful_tasks": aggregate.successful_tasks,
        "non_candidate_stops": aggregate.non_candidate_stops,
        "metrics": {
            metric.metric: {
                "numerator": metric.numerator,
                "denominator": metric.denominator,
                "value": metric.value,
                "not_applicable_reason": metric.not_applicable_reason,
            }
            for metric in aggregate.metrics
        },
        "statistics": None
        if one.statistics is None
        else one.statistics.semantic_payload(),
        "success_bounds": aggregate.success_bounds.semantic_payload(),
        "companions": aggregate.companions.semantic_payload(),
        "served_by": [each.semantic_payload() for each in one.served_by],
        "gates": [gate.semantic_payload() for gate in aggregate.gates],
        "ledger": [entry.semantic_payload() for entry in aggregate.ledger],
        "stops_by_cause": aggregate.stops_by_cause,
        "slices": [each.semantic_payload() for each in one.slices],
        "premature_knowledge": None
        if one.premature is None
        else one.premature.semantic_payload(),
    }


def aggregate_hashes(scored: Sequence[ScoredCandidate]) -> dict[str, str]:
    """Return the aggregate hash of each candidate by alias."""
    return {
        one.aggregate.candidate_alias: one.aggregate.aggregate_hash for one in scored
    }
