"""The contamination decision of a config, with every comparison that led to it.

It is the decision that `run` takes, but nothing is left out: a pair that was told
apart is shown with what told it apart. The publication is read by its hashes and its
published rows; conversations and the oracle are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.audit.exposed_rows import ExposedRows, PublishedRows, database
from harness.benchmark.contamination import candidate_claim
from harness.benchmark.model_identity import Comparison, compare
from harness.benchmark.run_manifest import read_run_manifest
from harness.benchmark.stored_source import PUBLICATION_LINEAGE
from harness.benchmark.table_check import TableChecker
from harness.canonical import Json
from harness.config import EvalConfig

AUDIT_VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A candidate beside a model that read rows."""

    exposed: ExposedRows
    comparison: Comparison

    def payload(self) -> dict[str, Json]:
        exposure = self.exposed.exposure
        return {
            "role": exposure.role,
            "scope": exposure.scope,
            "exposed_model": exposure.claim.shown,
            "verdict": self.comparison.verdict,
            "decided_by": self.comparison.axis,
            "reason": self.comparison.reason,
            "settled_by": self.comparison.settled_by,
            "task_count": self.exposed.task_count,
            "task_ids_hash": self.exposed.task_ids_hash,
            "first_task_ids": list(self.exposed.first_task_ids),
        }


def audit_config(config: EvalConfig) -> dict[str, Json]:
    """Return the whole decision as a JSON payload.

    Raises SourceError where the publication is not what the config names.
    """
    folder = config.paths.publication_root
    stated = config.source_run_manifest
    manifest = read_run_manifest(
        config.paths.run_manifest, stated.content_hash, lambda _: None
    )
    tables = TableChecker(folder, manifest)
    tables.check_bytes(stated.published_content_hash, lambda _: None)
    with database() as connection:
        rows = PublishedRows(connection, tables.published)
        exposures = rows.exposures(manifest.value)
        pairs = {
            candidate.alias: [
                _Pair(each, compare(candidate_claim(candidate), each.exposure.claim))
                for each in exposures
            ]
            for candidate in config.candidates
        }
        eligible = _eligible(config, pairs, rows)
        task_ids_hash = rows.task_ids_hash()[1]
    refusals = list(_refusals(config, pairs, eligible))
    lineage = manifest.value["lineage_policy"]
    reasons = [
        *config.non_publication_reasons,
        *(["source.lineage_policy"] if lineage != PUBLICATION_LINEAGE else []),
        *_reasons(pairs),
    ]
    return {
        "schema_version": AUDIT_VERSION,
        "eval_config_hash": config.eval_config_hash,
        "source_run_id": manifest.run_id,
        "source_task_count": rows.count,
        "source_task_ids_hash": task_ids_hash,
        "enforce": config.contamination.enforce,
        "on_violation": config.contamination.on_violation,
        "comparison_set": config.contamination.comparison_set,
        "publication_requested": config.publication.requested,
        "exposures": [each.payload() for each in exposures],
        "candidates": [
            {
                "alias": candidate.alias,
                "canonical_id": candidate.canonical_id,
                "identity": candidate_claim(candidate).semantic_payload(),
                "comparisons": [pair.payload() for pair in pairs[candidate.alias]],
                "eligible_task_count": eligible[candidate.alias],
            }
            for candidate in config.candidates
        ],
        "common_task_count": eligible[None],
        "decision": "refused" if refusals else "authorized",
        "refusals": refusals,
        "publication_allowed": not refusals and not reasons,
        "non_publication_reasons": list(dict.fromkeys(reasons)),
        "counts": verdict_counts(
            pair.comparison.verdict for each in pairs.values() for pair in each
        ),
    }


def verdict_counts(verdicts: Iterator[str]) -> dict[str, Json]:
    """Count comparisons by verdict."""
    counts = dict.fromkeys(("match", "unknown", "different"), 0)
    for verdict in verdicts:
        counts[verdict] += 1
    return dict(counts)


def _eligible(
    config: EvalConfig, pairs: dict[str, list[_Pair]], rows: PublishedRows
) -> dict[str | None, int]:
    """Count each candidate's tasks; the common ones stand under None."""
    policy = config.contamination
    read: dict[str | None, set[str]] = {alias: set() for alias in pairs}
    if policy.enforce and policy.on_violation == "exclude_row":
        for alias, each in pairs.items():
            read[alias] = {
                pair.exposed.exposure.role
                for pair in each
                if pair.comparison.verdict == "match"
            }
    read[None] = set().union(*read.values())
    return {
        alias: rows.count - (rows.touched_by(sorted(roles)) if roles else 0)
        for alias, roles in read.items()
    }


def _refusals(
    config: EvalConfig,
    pairs: dict[str, list[_Pair]],
    eligible: dict[str | None, int],
) -> Iterator[dict[str, Json]]:
    policy = config.contamination
    fatal: dict[str, str] = {}
    if policy.enforce and policy.on_violation == "fail_run":
        fatal["match"] = "eval_contamination_candidate_exposed"
    if policy.enforce and config.publication.requested:
        fatal["unknown"] = "eval_contamination_unresolved"
    for verdict, code in fatal.items():
        for alias, each in pairs.items():
            for pair in each:
                if pair.comparison.verdict == verdict:
                    role = pair.exposed.exposure.role
                    yield {"code": code, "candidate": alias, "role": role}
    # A refused comparison is what `run` reports; empty sets come after it.
    shared = policy.comparison_set == "common_intersection"
    for name, count in eligible.items():
        if count == 0 and (name is not None or shared):
            yield {
                "code": "eval_contamination_empty_task_set",
                "candidate": name,
                "role": None,
            }


def _reasons(pairs: dict[str, list[_Pair]]) -> Iterator[str]:
    for alias, each in pairs.items():
        verdicts = {pair.comparison.verdict for pair in each}
        if "match" in verdicts:
            yield f"contamination.exposed[{alias}]"
        if "unknown" in verdicts:
            yield f"contamination.unresolved[{alias}]"
