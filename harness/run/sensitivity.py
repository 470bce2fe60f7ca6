"""`sensitivity`: one recorded run under the whole declared set of policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.run.finished import OpenRun, open_finished
from harness.run.score import ScoredEpisode, readable, score_recorded
from harness.scoring.records import TaskScore
from harness.scoring.score import score_episode
from harness.scoring.sensitivity import (
    BASELINE,
    DESCRIPTIONS,
    SENSITIVITY_VERSION,
    Judged,
    PolicyName,
    Verdict,
    verdicts,
)
from harness.scoring.sensitivity_table import SensitivityTally


def sensitivity_of(folder: Path) -> dict[str, Json]:
    """Return the table of a finished run as a JSON payload.

    Raises ArtifactError, EvidenceError or ScoringError where a replay would.
    """
    with open_finished(folder) as run:
        plan = run.evidence.plan
        tally = SensitivityTally(
            {c.alias: run.evidence.task_ids_of(c) for c in plan.header.candidates}
        )
        for scored, found in _verdicts(run):
            tally.add(
                scored.candidate_alias,
                scored.task_id,
                scored.trial,
                found,
            )
        return {
            "schema_version": SENSITIVITY_VERSION,
            "diagnostic": True,
            "eval_run_id": run.manifest["eval_run_id"],
            "evidence_root": run.manifest["merkle_root"],
            "plan_identity": plan.header.plan_identity,
            "scoring_policy": run.evidence.config.scoring_policy.semantic_payload(),
            "baseline": BASELINE,
            "policies": dict(DESCRIPTIONS),
            "trials": plan.header.trials,
            **tally.result().semantic_payload(),
        }


def _verdicts(run: OpenRun) -> Iterator[tuple[TaskScore, dict[PolicyName, Verdict]]]:
    evidence = run.evidence
    for planned in evidence.plan.header.candidates:
        endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
        for task in evidence.tasks_of(planned):
            for trial in range(evidence.plan.header.trials):
                scored = score_recorded(evidence, endpoint, task, trial)
                with readable(f"task {task.spec.task_id}, trial {trial}"):
                    yield scored.score, verdicts(_judged(scored))


def _judged(scored: ScoredEpisode) -> Judged:
    score, recorded = scored.score, scored.recorded
    strict_002 = replace(score.scoring_policy, attribution="strict-002")
    strict_score = score_episode(
        recorded.episode,
        recorded.task,
        strict_002,
        eval_config_hash=score.eval_config_hash,
        scoring_policy_hash=strict_002.identity_hash(),
        plan_identity=score.plan_identity,
    )
    return Judged(
        recorded.task,
        recorded.episode,
        score,
        strict_score,
        recorded.attempts_by_turn,
    )
