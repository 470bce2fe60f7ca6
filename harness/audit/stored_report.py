"""Whether a stored contamination report follows from its own inputs.

The inputs lie beside it: the resolved config has the candidates and the policy, the
source report the exposures and the tasks. Every comparison, list, reason and identity
is worked out again from them; what differs is named. A refused run wrote no resolved
config, so its candidates are taken from the refusal itself, which is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.audit.slim_report import list_identity, read_slim
from harness.benchmark.contamination import (
    CHECKS,
    FAILURE_NAME,
    PLAN_VERSION,
    REPORT_NAME,
    candidate_claim,
)
from harness.benchmark.model_identity import IdentityClaim
from harness.benchmark.source import REPORT_NAME as SOURCE_REPORT_NAME
from harness.benchmark.stored_source import (
    PUBLICATION_LINEAGE,
    ClaimedModel,
    claimed_model,
    rows_of,
    source_identity,
)
from harness.canonical import Json, content_hash, hash_file
from harness.config import EvalConfig
from harness.errors import ArtifactError, FairtrialError, Violation
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.manifest import MANIFEST_FILE
from harness.run.difference import differences

_EMPTY: Final = list_identity([])
_INPUTS: Final = (
    "contamination_report",
    "source_verification_report",
    "resolved_eval_config",
    "eval_report",
)
"""What an audit of a finished run reads, by its name in the manifest."""
_UNSHAPED: Final = (AttributeError, LookupError, TypeError, ValueError)
"""How reading fails in a document that is strict JSON and no report."""


@dataclass(frozen=True, slots=True)
class AuditedReport:
    """One stored report: what it says, and where it says something else."""

    status: str
    """`passed`, `refused` or `unreadable`."""
    candidates: tuple[dict[str, Json], ...]
    """Each with its comparisons, those that were told apart among them."""
    publication_allowed: bool | None
    problems: tuple[Violation, ...]


def audit_report(folder: Path) -> AuditedReport:
    """Check one run folder's report; what cannot be read is a problem, no error."""
    try:
        return _audited(folder)
    except FairtrialError as error:
        return AuditedReport("unreadable", (), None, error.violations)
    except _UNSHAPED as error:
        problem = Violation(
            "eval_artifact_invalid",
            folder.name,
            "the report or one of its inputs has another shape",
            "the files as a run wrote them",
            f"{type(error).__name__}: {error}"[:200],
            "bring back an intact copy of the run folder",
        )
        return AuditedReport("unreadable", (), None, (problem,))


def _audited(folder: Path) -> AuditedReport:
    refused = not (folder / REPORT_NAME).exists()
    name = FAILURE_NAME if refused else REPORT_NAME
    if refused and not (folder / FAILURE_NAME).exists():
        raise ArtifactError(
            "eval_artifact_invalid",
            "there is no contamination report in this folder",
            where=folder.name,
            expected=f"{REPORT_NAME} or {FAILURE_NAME}",
            actual="neither",
            recovery="name a run's output folder",
        )
    stored = read_slim(folder / name)
    source: dict[str, Any] = read_json_artifact(folder / SOURCE_REPORT_NAME)
    if refused:
        claimed = [
            claimed_model(
                each["alias"],
                each["canonical_model_identity"],
                IdentityClaim.from_payload(each["identity"]),
                source["exposures"],
            )
            for each in stored["candidates"]
        ]
        ours = _refusal(stored, source, claimed)
        problems = [*differences(name, ours, stored), *_unfounded(stored, claimed)]
        allowed = False
    else:
        config = EvalConfig.from_resolved(
            read_json_artifact(folder / ARTIFACT_FILES["resolved_eval_config"])
        )
        claimed = [
            claimed_model(
                c.alias, c.canonical_id, candidate_claim(c), source["exposures"]
            )
            for c in config.candidates
        ]
        ours = _report(config, source, claimed, stored)
        problems = [
            *differences(name, ours, stored),
            *_refused_after_all(config, claimed),
            *_bindings(folder, stored),
        ]
        allowed = bool(stored["publication_allowed"])
    identity = source_identity(source)
    if identity is not None:
        where = f"{SOURCE_REPORT_NAME}, verification_identity"
        problems += differences(where, identity, source["verification_identity"])
    candidates: list[dict[str, Json]] = [
        {
            "alias": each.alias,
            "canonical_id": each.canonical_id,
            "comparisons": list(each.comparisons()),
        }
        for each in claimed
    ]
    status = "refused" if refused else "passed"
    return AuditedReport(status, tuple(candidates), allowed, tuple(problems))


def _report(
    config: EvalConfig,
    source: dict[str, Any],
    claimed: Sequence[ClaimedModel],
    stored: dict[str, Any],
) -> dict[str, Json]:
    policy, index = config.contamination, source["task_index"]
    everything = {"count": index["task_count"], "hash": index["task_ids_hash"]}
    excludes = policy.enforce and policy.on_violation == "exclude_row"
    read = [each.having("match") if excludes else [] for each in claimed]
    stated = stored["candidates"]
    lists = [
        _lists(everything, matched, said)
        for matched, said in zip(read, [*stated, *({},) * len(claimed)], strict=False)
    ]
    union = [exposure for matched in read for exposure in matched]
    common = _lists(everything, union, {"eligible_task_ids": stored["common"]})[0]
    reasons = _reasons(config, source, claimed)
    head: dict[str, Json] = {
        "schema_version": PLAN_VERSION,
        "eval_config_hash": config.eval_config_hash,
        "scoring_policy_hash": config.scoring_policy_hash,
        "source_verification_identity": source["verification_identity"],
        "source_run_id": source["source_run_id"],
        "source_task_ids_hash": index["task_ids_hash"],
        "enforce": policy.enforce,
        "on_violation": policy.on_violation,
        "comparison_set": policy.comparison_set,
        "publication_allowed": not reasons,
        "non_publication_reasons": list(reasons),
    }
    plan: dict[str, Json] = {
        **head,
        "exposures": source["exposures"],
        "candidates": [
            _candidate(each, eligible, excluded)
            for each, (eligible, excluded) in zip(claimed, lists, strict=True)
        ],
        "common": common,
    }
    return {
        **plan,
        "status": "passed",
        "plan_identity": content_hash(plan),
        "checks": list(CHECKS),
    }


def _refusal(
    stored: dict[str, Any], source: dict[str, Any], claimed: Sequence[ClaimedModel]
) -> dict[str, Json]:
    index = source["task_index"]
    everything = {"count": index["task_count"], "hash": index["task_ids_hash"]}
    return {
        "schema_version": PLAN_VERSION,
        "status": "refused",
        "eval_config_hash": source["eval_config_hash"],
        "source_verification_identity": source["verification_identity"],
        "source_run_id": source["source_run_id"],
        "exposures": source["exposures"],
        "candidates": [_candidate(each, everything, _EMPTY) for each in claimed],
        "error": stored["error"],
    }


def _candidate(
    claimed: ClaimedModel, eligible: dict[str, Json], excluded: dict[str, Json]
) -> dict[str, Json]:
    return {
        "alias": claimed.alias,
        "identity": claimed.claim.semantic_payload(),
        "canonical_model_identity": claimed.canonical_id,
        "collisions": claimed.collisions(),
        "eligible_task_ids": eligible,
        "excluded_task_ids": excluded,
    }


def _lists(
    everything: dict[str, Json], read: Sequence[dict[str, Any]], stated: dict[str, Any]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the eligible and the excluded tasks as far as the inputs fix them.

    The inputs have numbers and hashes. They fix both lists where nothing or
    everything was read; where a part was read, they fix the excluded list and the
    number of the eligible; where roles read different parts, a range of numbers.
    """
    if not read:
        return everything, _EMPTY
    parts = {each["task_ids_hash"]: rows_of(each) for each in read}
    if everything["hash"] in parts:
        return _EMPTY, everything
    said = stated.get("eligible_task_ids", _EMPTY)
    total = everything["count"]
    if len(parts) == 1:
        (part,) = parts.values()
        return {"count": total - part["count"], "hash": said["hash"]}, part
    counts = [part["count"] for part in parts.values()]
    excluded = stated.get("excluded_task_ids", _EMPTY)
    least, most = max(counts), min(total, sum(counts))
    eligible = min(max(said["count"], total - most), total - least)
    return (
        {"count": eligible, "hash": said["hash"]},
        {"count": total - eligible, "hash": excluded["hash"]},
    )


def _reasons(
    config: EvalConfig, source: dict[str, Any], claimed: Sequence[ClaimedModel]
) -> dict[str, None]:
    reasons = list(config.non_publication_reasons)
    if source["lineage_policy"] != PUBLICATION_LINEAGE:
        reasons.append("source.lineage_policy")
    for each in claimed:
        if each.having("match"):
            reasons.append(f"contamination.exposed[{each.alias}]")
        if each.having("unknown"):
            reasons.append(f"contamination.unresolved[{each.alias}]")
    return dict.fromkeys(reasons)


def _refused_after_all(
    config: EvalConfig, claimed: Sequence[ClaimedModel]
) -> Iterator[Violation]:
    policy = config.contamination
    fatal = []
    if policy.enforce and policy.on_violation == "fail_run":
        fatal.append(("match", "eval_contamination_candidate_exposed"))
    if policy.enforce and config.publication.requested:
        fatal.append(("unknown", "eval_contamination_unresolved"))
    for verdict, code in fatal:
        for each in claimed:
            if each.having(verdict):
                yield Violation(
                    code,
                    f"{REPORT_NAME}, candidate {each.alias}",
                    "the run went ahead where its own inputs refuse it",
                    FAILURE_NAME,
                    "status passed",
                    "leave the candidate out",
                )


def _unfounded(
    stored: dict[str, Any], claimed: Sequence[ClaimedModel]
) -> Iterator[Violation]:
    """Yield that a refusal states a reason that its own inputs do not give."""
    code = stored["error"]["code"]
    grounds = {
        "eval_contamination_candidate_exposed": ("match",),
        "eval_contamination_unresolved": ("unknown",),
        "eval_contamination_empty_task_set": ("match",),
    }
    if not any(c.having(v) for c in claimed for v in grounds.get(code, ())):
        yield Violation(
            "eval_contamination_invalid",
            f"{FAILURE_NAME}, error.code",
            "no comparison gives the reason of the refusal",
            f"one of {', '.join(grounds)}, and a candidate that it is about",
            str(code),
            "bring back the folder as the run wrote it",
        )


def _bindings(folder: Path, stored: dict[str, Any]) -> Iterator[Violation]:
    """Compare the report with what a finished run says of it."""
    manifest_file = folder / MANIFEST_FILE
    if not manifest_file.exists():
        return
    manifest = read_json_artifact(manifest_file)
    for name in _INPUTS:
        yield from differences(
            f"{MANIFEST_FILE}, artifacts.{name}.content_hash",
            hash_file(folder / ARTIFACT_FILES[name]),
            manifest["artifacts"][name]["content_hash"],
        )
    report_file = folder / ARTIFACT_FILES["eval_report"]
    report = read_json_artifact(report_file)
    matched = [
        {"alias": candidate["alias"], **collision}
        for candidate in stored["candidates"]
        for collision in candidate["collisions"]
        if collision["verdict"] == "match"
    ]
    yield from differences(
        f"{report_file.name}, contamination_violations",
        matched,
        report["contamination_violations"],
    )
    yield from differences(
        f"{report_file.name}, plan_identity",
        stored["plan_identity"],
        report["plan_identity"],
    )
