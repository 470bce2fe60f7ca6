"""Which tasks a candidate may be asked, given what it may have read.

Every candidate is compared with every model that read published rows. Policy only
narrows: a refusal, or fewer rows, never more (`spec/executable-evaluator.md` 3.4).
The result is the plan, the one list of tasks that a runner can get.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NoReturn

from harness.benchmark.exposure import Exposure
from harness.benchmark.model_identity import Comparison, IdentityClaim, compare
from harness.benchmark.report_files import replace_report
from harness.benchmark.source import VerifiedSource
from harness.canonical import Json, content_hash
from harness.config import EvalConfig
from harness.config.document import CandidateSection
from harness.errors import ContaminationError, Violation

PLAN_VERSION: Final = "1.0"
REPORT_NAME: Final = "contamination_report.json"
FAILURE_NAME: Final = "contamination_failure.json"
CHECKS: Final = (
    "exposure_inventory",
    "candidate_comparison",
    "violation_policy",
    "task_sets",
)


@dataclass(frozen=True, slots=True)
class Collision:
    """A candidate and an exposure that match, or that nobody can tell apart."""

    exposure: Exposure
    comparison: Comparison

    def payload(self) -> dict[str, Json]:
        """Return the collision as the report has it."""
        return {
            "role": self.exposure.role,
            "scope": self.exposure.scope,
            "verdict": self.comparison.verdict,
            "exposed_model": self.exposure.claim.shown,
            "reason": self.comparison.reason,
            "decided_by": self.comparison.axis,
            "settled_by": self.comparison.settled_by,
            "task_ids": list(self.exposure.task_ids),
        }

    def identity(self) -> dict[str, Json]:
        """Return the collision with its task ids as count and hash."""
        return _hashed(self.payload(), "task_ids")


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """One candidate's collisions and the tasks that are left to it."""

    alias: str
    claim: IdentityClaim
    canonical_model_identity: str
    collisions: tuple[Collision, ...]
    eligible_task_ids: tuple[str, ...]
    excluded_task_ids: tuple[str, ...]

    def having(self, verdict: str) -> tuple[Collision, ...]:
        """Return the collisions of one verdict."""
        return tuple(c for c in self.collisions if c.comparison.verdict == verdict)

    def payload(self) -> dict[str, Json]:
        """Return the candidate as the report has it."""
        return {
            "alias": self.alias,
            "identity": self.claim.semantic_payload(),
            "canonical_model_identity": self.canonical_model_identity,
            "collisions": [c.payload() for c in self.collisions],
            "eligible_task_ids": list(self.eligible_task_ids),
            "excluded_task_ids": list(self.excluded_task_ids),
        }

    def identity(self) -> dict[str, Json]:
        """Return the candidate with its task ids as counts and hashes."""
        payload = {
            **self.payload(),
            "collisions": [c.identity() for c in self.collisions],
        }
        return _hashed(payload, "eligible_task_ids", "excluded_task_ids")


@dataclass(frozen=True)
class EligiblePlan:
    """The authorized tasks of every candidate; built by `authorize` alone."""

    eval_config_hash: str
    scoring_policy_hash: str
    source_verification_identity: str
    source_run_id: str
    source_task_ids_hash: str
    enforce: bool
    on_violation: str
    comparison_set: str
    exposures: tuple[Exposure, ...]
    candidates: tuple[CandidatePlan, ...]
    """In the order of their aliases."""
    common: tuple[str, ...]
    """Task ids that every candidate may be asked, in publication order."""
    publication_allowed: bool
    non_publication_reasons: tuple[str, ...]

    def candidate(self, alias: str) -> CandidatePlan:
        """Return one candidate's plan; raise KeyError for an unknown alias."""
        for candidate in self.candidates:
            if candidate.alias == alias:
                return candidate
        raise KeyError(alias)

    def task_ids_for(self, alias: str) -> tuple[str, ...]:
        """Return the tasks to ask a candidate, in publication order."""
        candidate = self.candidate(alias)
        if self.comparison_set == "per_candidate":
            return candidate.eligible_task_ids
        return self.common

    @cached_property
    def plan_identity(self) -> str:
        """The content hash of the plan; task id lists count by number and hash."""
        return content_hash(
            {
                **self._head(),
                "exposures": [exposure.identity() for exposure in self.exposures],
                "candidates": [c.identity() for c in self.candidates],
                "common": _list_identity(self.common),
            }
        )

    @property
    def report(self) -> dict[str, Json]:
        """The payload of `contamination_report.json`."""
        return {
            **self._head(),
            "status": "passed",
            "plan_identity": self.plan_identity,
            "exposures": [exposure.identity() for exposure in self.exposures],
            "candidates": [candidate.payload() for candidate in self.candidates],
            "common": list(self.common),
            "checks": list(CHECKS),
        }

    def _head(self) -> dict[str, Json]:
        return {
            "schema_version": PLAN_VERSION,
            "eval_config_hash": self.eval_config_hash,
            "scoring_policy_hash": self.scoring_policy_hash,
            "source_verification_identity": self.source_verification_identity,
            "source_run_id": self.source_run_id,
            "source_task_ids_hash": self.source_task_ids_hash,
            "enforce": self.enforce,
            "on_violation": self.on_violation,
            "comparison_set": self.comparison_set,
            "publication_allowed": self.publication_allowed,
            "non_publication_reasons": list(self.non_publication_reasons),
        }


def authorize(config: EvalConfig, source: VerifiedSource) -> EligiblePlan:
    """Compare every candidate with every exposure and apply the policy.

    Raises ContaminationError that names every exposed candidate and, where
    publication is requested, every one that cannot be told apart.
    """
    if source.eval_config_hash != config.eval_config_hash:
        raise ContaminationError(
            "eval_contamination_invalid",
            "the source was verified for another config",
            expected=config.eval_config_hash,
            actual=source.eval_config_hash,
            recovery="verify the source again",
        )
    policy = config.contamination
    excludes = policy.enforce and policy.on_violation == "exclude_row"
    candidates = tuple(
        _plan_candidate(candidate, source, excludes=excludes)
        for candidate in config.candidates
    )
    if policy.enforce:
        _refuse_exposed(config, candidates)
    excluded = {task for c in candidates for task in c.excluded_task_ids}
    common = tuple(task for task in source.task_ids if task not in excluded)
    _refuse_empty(config, candidates, common)
    reasons = (
        *config.non_publication_reasons,
        *source.non_publication_reasons,
        *_reasons(candidates),
    )
    return EligiblePlan(
        eval_config_hash=config.eval_config_hash,
        scoring_policy_hash=config.scoring_policy_hash,
        source_verification_identity=source.verification_identity,
        source_run_id=source.run_id,
        source_task_ids_hash=source.task_ids_hash,
        enforce=policy.enforce,
        on_violation=policy.on_violation,
        comparison_set=policy.comparison_set,
        exposures=source.exposures,
        candidates=candidates,
        common=common,
        publication_allowed=not reasons,
        non_publication_reasons=tuple(dict.fromkeys(reasons)),
    )


def assert_plan_unchanged(
    plan: EligiblePlan, config: EvalConfig, source: VerifiedSource
) -> None:
    """Derive the plan again; raise ContaminationError where it came out another."""
    again = authorize(config, source)
    if again.plan_identity != plan.plan_identity:
        raise ContaminationError(
            "eval_contamination_plan_drift",
            "the plan is not the one that was authorized",
            expected=plan.plan_identity,
            actual=again.plan_identity,
            recovery="start the run again",
        )


def candidate_claim(candidate: CandidateSection) -> IdentityClaim:
    """Return what the config says about the model behind a candidate."""
    identity = candidate.model_identity
    return IdentityClaim(
        provider=candidate.provider,
        served_model=candidate.model,
        weight_source=identity.source,
        weight_model=identity.model,
        revision=identity.revision,
        weights_digest=identity.weights_digest,
        label=candidate.canonical_id,
    )


def write_plan_report(folder: Path, plan: EligiblePlan) -> None:
    """Write `contamination_report.json`; an older failure file is removed."""
    replace_report(folder, REPORT_NAME, plan.report, stale=FAILURE_NAME)


def write_plan_failure(
    folder: Path,
    config: EvalConfig,
    source: VerifiedSource,
    error: ContaminationError,
) -> None:
    """Write `contamination_failure.json`; an older report is removed."""
    payload = {
        "schema_version": PLAN_VERSION,
        "status": "refused",
        "eval_config_hash": config.eval_config_hash,
        "source_verification_identity": source.verification_identity,
        "source_run_id": source.run_id,
        "exposures": [exposure.identity() for exposure in source.exposures],
        "candidates": [
            _plan_candidate(candidate, source, excludes=False).payload()
            for candidate in config.candidates
        ],
        "error": error.as_report(),
    }
    replace_report(folder, FAILURE_NAME, payload, stale=REPORT_NAME)


def _plan_candidate(
    candidate: CandidateSection, source: VerifiedSource, *, excludes: bool
) -> CandidatePlan:
    claim = candidate_claim(candidate)
    compared = (Collision(e, compare(claim, e.claim)) for e in source.exposures)
    collisions = tuple(c for c in compared if c.comparison.verdict != "different")
    read: set[str] = set()
    if excludes:
        for collision in collisions:
            if collision.comparison.verdict == "match":
                read.update(collision.exposure.task_ids)
    return CandidatePlan(
        alias=candidate.alias,
        claim=claim,
        canonical_model_identity=candidate.canonical_id,
        collisions=collisions,
        eligible_task_ids=tuple(t for t in source.task_ids if t not in read),
        excluded_task_ids=tuple(t for t in source.task_ids if t in read),
    )


def _refuse_exposed(config: EvalConfig, candidates: tuple[CandidatePlan, ...]) -> None:
    violations: list[Violation] = []
    if config.contamination.on_violation == "fail_run":
        violations += _violations(
            candidates,
            "match",
            "eval_contamination_candidate_exposed",
            "leave the candidate out, or see what is left of it with "
            "contamination.on_violation: exclude_row (not publishable)",
        )
    if config.publication.requested:
        violations += _violations(
            candidates,
            "unknown",
            "eval_contamination_unresolved",
            "settle it, or set publication.requested: false",
        )
    if violations:
        _refuse(violations)


def _violations(
    candidates: tuple[CandidatePlan, ...], verdict: str, code: str, recovery: str
) -> Iterator[Violation]:
    for candidate in candidates:
        for collision in candidate.having(verdict):
            comparison, exposure = collision.comparison, collision.exposure
            settled = comparison.settled_by
            yield Violation(
                code,
                f"candidate {candidate.alias}, role {exposure.role}",
                f"{comparison.reason} ({comparison.axis})",
                "a model that read none of the published rows",
                f"{exposure.claim.shown} read {len(exposure.task_ids)} rows "
                f"({exposure.scope})",
                f"{settled}; {recovery}" if settled else recovery,
            )


def _refuse_empty(
    config: EvalConfig,
    candidates: tuple[CandidatePlan, ...],
    common: tuple[str, ...],
) -> None:
    sets = [(f"candidate {c.alias}", c.eligible_task_ids) for c in candidates]
    if config.contamination.comparison_set == "common_intersection":
        sets.append(("the common set", common))
    violations = [
        Violation(
            "eval_contamination_empty_task_set",
            name,
            "no task is left to ask",
            "at least one task that the candidate has not read",
            "none",
            "leave the exposed candidate out, or take another benchmark",
        )
        for name, tasks in sets
        if not tasks
    ]
    if violations:
        _refuse(violations)


def _refuse(violations: list[Violation]) -> NoReturn:
    raise ContaminationError.from_violations(tuple(violations))


def _reasons(candidates: tuple[CandidatePlan, ...]) -> Iterator[str]:
    for candidate in candidates:
        if candidate.having("match"):
            yield f"contamination.exposed[{candidate.alias}]"
        if candidate.having("unknown"):
            yield f"contamination.unresolved[{candidate.alias}]"


def _hashed(payload: dict[str, Json], *lists: str) -> dict[str, Json]:
    return {
        key: _list_identity(value) if key in lists else value
        for key, value in payload.items()
    }


def _list_identity(task_ids: tuple[str, ...] | list[str]) -> dict[str, Json]:
    return {"count": len(task_ids), "hash": content_hash(list(task_ids))}
