"""`sensitivity`: one recorded run under the whole declared set of policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.run.finished import OpenRun, open_finished
from harness.run.recorded import concluded
from harness.run.score import UNREADABLE, unreadable
from harness.scoring.reading import ScorableTask
from harness.scoring.score import score_episode
from harness.scoring.sensitivity import (
    BASELINE,
    DESCRIPTIONS,
    SENSITIVITY_VERSION,
    Judged,
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
        for judged in _judged(run):
            episode = judged.episode
            tally.add(
                episode.candidate_alias,
                episode.task_id,
                episode.trial,
                verdicts(judged),
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


def _judged(run: OpenRun) -> Iterator[Judged]:
    evidence = run.evidence
    for planned in evidence.plan.header.candidates:
        endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
        for task in evidence.tasks_of(planned):
            for trial in range(evidence.plan.header.trials):
                try:
                    yield _judge(run, endpoint, task, trial)
                except UNREADABLE as error:
                    where = f"task {task.spec.task_id}, trial {trial}"
                    raise unreadable(where, error) from error


def _judge(run: OpenRun, endpoint: Endpoint, task: ScorableTask, trial: int) -> Judged:
    evidence, config = run.evidence, run.evidence.config
    episode = concluded(evidence.episode(endpoint, task, trial)).episode
    strict_002 = replace(config.scoring_policy, attribution="strict-002")
    score, strict_score = (
        score_episode(
            episode,
            task,
            policy,
            eval_config_hash=config.eval_config_hash,
            scoring_policy_hash=policy.identity_hash(),
            plan_identity=evidence.plan.header.plan_identity,
        )
        for policy in (config.scoring_policy, strict_002)
    )
    return Judged(
        task,
        episode,
        score,
        strict_score,
        tuple(
            evidence.candidate_log.attempts_of(turn.request_hash)
            for turn in episode.turns
        ),
    )
