"""The evaluation record of a run: its config, plan and report, held for comparison.

Everything in it follows from files that the manifest binds, so a verification builds
the same record again. An endpoint tells who answered and nothing of its machine, so
device, types and versions are unknown and decoding is never known as applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness.canonical import Json, hash_bytes
from harness.conversation.script import SCRIPT_VERSION
from harness.conversation.task import TASK_SPEC_VERSION
from harness.evaluations.conditions import UNKNOWN, ConditionCounts
from harness.evaluations.contracts import (
    contract_fields,
    metric_fields,
    scorer_versions,
)
from harness.evaluations.numbers import plain_numbers
from harness.evaluations.protocol import Protocol
from harness.evaluations.record import (
    MetricValue,
    RecordInputs,
    Subject,
    build_record,
)
from harness.evidence.episode import EPISODE_VERSION
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.plan_file import PlanHeader
from harness.scoring.aggregate import AGGREGATE_VERSION, STOPS_OVER_CAP
from harness.scoring.answers import SELECTABLE
from harness.scoring.records import TASK_SCORE_VERSION

BY_SUBJECT: Final[Mapping[str, Json]] = {"stated": "by subject"}
"""Stands for a group of fields that candidates of one run do not share."""
_OUTSIDE_PLAN: Final = ("max_parallel_tasks", "max_retries", "max_stops")
"""Limits that change no verdict: a condition, and two ends of a run."""
_TABLE: Final = ARTIFACT_FILES["eval_task_results"]


def run_record(
    header: PlanHeader,
    meaning: Mapping[str, Json],
    report: Mapping[str, Json],
    artifacts: Mapping[str, tuple[str, str]],
) -> dict[str, Json]:
    """Return the payload of a run's `eval_record.json`.

    `meaning` is the semantic payload of the resolved config, `report` that of
    `eval_report.json`; `artifacts` has file and content hash of everything but record
    and manifest.
    """
    files = dict(artifacts.values())
    samples = _TABLE if _TABLE in files else None
    return build_record(record_inputs(header, meaning, report, files, samples))


def record_inputs(
    header: PlanHeader,
    meaning: Mapping[str, Json],
    report: Mapping[str, Json],
    files: Mapping[str, str],
    samples: str | None,
) -> RecordInputs:
    """Return what a record of episodes is assembled from.

    `files` has content hashes by file name, `samples` the table of episodes.
    """
    contract = contract_of(header)
    metric = SELECTABLE[contract][0]
    sections = {each["alias"]: each for each in meaning["candidates"]}
    subjects = [
        _subject(candidate, sections[candidate["alias"]], meaning, report, samples)
        for candidate in report["candidates"]
    ]
    return RecordInputs(
        kind="executable",
        task=contract,
        protocol=_protocol(header, meaning, subjects, metric),
        scorer={**scorer_versions(contract), **scorer_of(report)},
        subjects=subjects,
        artifacts=files,
        metric=metric,
        details=_details(report),
    )


def record_beside(
    header: PlanHeader,
    meaning: Mapping[str, Json],
    report: Mapping[str, Json],
    manifest: Mapping[str, Json],
) -> dict[str, Json]:
    """Return the record that belongs to a finished run, by what its manifest names."""
    named = {
        name: (ARTIFACT_FILES[name], str(each["content_hash"]))
        for name, each in manifest["artifacts"].items()
        if name in ARTIFACT_FILES and name != "eval_record"
    }
    return run_record(header, meaning, report, named)


def contract_of(header: PlanHeader) -> str:
    """Return the name of the scoring contract of a run."""
    return "trace" if header.scope == "trace" else "executable"


def scorer_of(report: Mapping[str, Json]) -> dict[str, Json]:
    """Return the versions of what scores episodes, with the cited table of causes."""
    return {
        "aggregate_version": AGGREGATE_VERSION,
        "episode_version": EPISODE_VERSION,
        "error_taxonomy_hash": report["error_taxonomy_hash"],
        "task_score_version": TASK_SCORE_VERSION,
    }


def _details(report: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "eval_run_id": report["eval_run_id"],
        "eval_config_hash": report["eval_config_hash"],
        "plan_identity": report["plan_identity"],
        "publication_allowed": report["publication_allowed"],
        "non_publication_reasons": report["non_publication_reasons"],
        "policy_changes": report["rescorable"],
    }


def _protocol(
    header: PlanHeader,
    meaning: Mapping[str, Json],
    subjects: Sequence[Subject],
    metric: str,
) -> Protocol:
    contract = contract_of(header)
    oracle = meaning["source_oracle"]
    limits = meaning["limits"]
    return Protocol(
        rows=_shared(subjects, "rows"),
        prompts=_shared(subjects, "prompts"),
        decoding=_shared(subjects, "decoding"),
        metric=metric_fields(contract, metric),
        contract={
            **contract_fields(contract, header.scoring_policy_hash),
            "policy": header.scoring_policy.semantic_payload(),
        },
        plan={
            "trials": header.trials,
            "limits": {n: limits[n] for n in limits if n not in _OUTSIDE_PLAN},
            "contamination": meaning["contamination"],
            "max_stop_share": meaning["publication"]["max_stop_share"],
        },
        pack={}
        if oracle is None
        else {
            "kind": oracle["kind"],
            "pack_id": oracle["pack_id"],
            "version": oracle["version"],
            "verification_identity": header.oracle_verification_identity,
        },
        scope={"kind": "conversation", "mode": header.scope},
    )


def _shared(subjects: Sequence[Subject], group: str) -> Mapping[str, Json]:
    found = [plain_numbers(dict(each.protocol[group])) for each in subjects]
    first: Mapping[str, Json] = found[0]
    return first if all(each == first for each in found) else BY_SUBJECT


def _subject(
    candidate: Mapping[str, Json],
    section: Mapping[str, Json],
    meaning: Mapping[str, Json],
    report: Mapping[str, Json],
    samples: str | None,
) -> Subject:
    inference: dict[str, Json] = dict(section["inference"])
    source = meaning["source_run_manifest"]
    over_cap = STOPS_OVER_CAP in report["non_publication_reasons"]
    return Subject(
        candidate["alias"],
        "candidate",
        {"identity": candidate["canonical_id"], "requested_model": section["model"]},
        metrics={
            name: MetricValue(
                each["value"],
                each["numerator"],
                each["denominator"] or None,
                each["not_applicable_reason"],
            )
            for name, each in candidate["metrics"].items()
        },
        conditions=_conditions(candidate, section, meaning),
        requested=inference,
        applied=dict.fromkeys(inference, UNKNOWN),
        counts={
            "episodes": candidate["task_count"],
            "successful": candidate["successful_tasks"],
            "non_candidate_stops": candidate["non_candidate_stops"],
            **candidate["companions"],
        },
        samples=samples,
        protocol={
            "rows": {
                "sha256": source["published_content_hash"] or source["content_hash"],
                "ids_sha256": candidate["task_ids_hash"],
                "n": candidate["task_count"] // candidate["trials"],
            },
            "prompts": {
                "script_version": SCRIPT_VERSION,
                "task_spec_version": TASK_SPEC_VERSION,
                "echo_reasoning": section["echo_reasoning"],
            },
            "decoding": inference,
        },
        withheld=STOPS_OVER_CAP if over_cap else None,
    )


def _conditions(
    candidate: Mapping[str, Json],
    section: Mapping[str, Json],
    meaning: Mapping[str, Json],
) -> dict[str, Json]:
    fixed = {
        "model_identity": candidate["canonical_id"],
        "max_in_flight": meaning["limits"]["max_parallel_tasks"],
        "isolation": meaning["isolation"],
    }
    served_by, episodes = candidate["served_by"], candidate["task_count"]
    return endpoint_conditions(section, fixed, served_by, episodes)


def endpoint_conditions(
    section: Mapping[str, Json],
    fixed: Mapping[str, Json],
    served_by: Sequence[Mapping[str, Json]],
    asked: int,
) -> dict[str, Json]:
    """Count what every received completion said, beside what the config fixes.

    `section` is the candidate's of the config; where nothing was received, `asked`
    things were asked of a server that is unknown.
    """
    known: dict[str, Json] = {
        "engine": "chat_http",
        "provider": section["provider"],
        "provider_api_version": section["provider_api_version"],
        "endpoint_hash": hash_bytes(section["api"]["base_url"].encode()),
        "requested_model": section["model"],
        "device": UNKNOWN,
        "compute_dtype": UNKNOWN,
        "versions": UNKNOWN,
        **fixed,
    }
    counts = ConditionCounts()
    for served in served_by:
        told = {
            "server": served["server"] or UNKNOWN,
            "served_model": served["served_model"] or UNKNOWN,
        }
        counts.add({**known, **told}, served["responses"])
    if not served_by:
        counts.add(known, asked)
    return counts.result()
