"""The key of an episode, worked out from what fixes the episode."""

from __future__ import annotations

from typing import Protocol

from harness.conversation.driver import EpisodeRequest
from harness.evidence.episode_log import trace_key


class ScoringIdentity(Protocol):
    """The part of a config that an episode's key covers."""

    @property
    def eval_config_hash(self) -> str: ...  # noqa: D102
    @property
    def scoring_policy_hash(self) -> str: ...  # noqa: D102


def episode_key(config: ScoringIdentity, request: EpisodeRequest) -> str:
    """Return the episode log's key of one executable episode."""
    script = request.task.spec.script
    part = request.task.spec.executable
    return trace_key(
        candidate_alias=request.endpoint.alias,
        canonical_model_identity=request.endpoint.canonical_id,
        task_id=script.task_id,
        trial=request.trial,
        plan_identity=request.plan_identity,
        eval_config_hash=config.eval_config_hash,
        scoring_policy_hash=config.scoring_policy_hash,
        source_verification_identity=script.source_verification_identity,
        oracle_verification_identity=None
        if part is None
        else part.oracle_verification_identity,
        script_hash=request.task.script_hash,
        task_spec_hash=request.task.spec_hash or "",
    )
