"""One turn under the rule of its conversation: truth, answer, score.

A turn whose recorded answer holds no ground truth is excluded, never zero. An answer
that contributes nothing scores 0, whether the model said nothing or was not asked.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.canonical import Json
from harness.scoring.mlperf_agentic.actions import NO_ACTIONS, Actions, bash_actions
from harness.scoring.mlperf_agentic.coding import overlap
from harness.scoring.mlperf_agentic.conversation_ids import Domain, domain_of
from harness.scoring.mlperf_agentic.workflow import model_intent, truth_intents


class Truth(NamedTuple):
    """What the recorded answer of a turn says is right."""

    domain: Domain
    names: tuple[str, ...]
    """Actions in order, or intent codes sorted; empty is no ground truth."""
    stages: int = 0
    """Command stages behind the actions."""


class Answer(NamedTuple):
    """What one answer contributes under both rules."""

    actions: Actions = NO_ACTIONS
    intent: str | None = None


NO_ANSWER = Answer()


def truth_of(source_id: str, recorded: dict[str, Json]) -> Truth:
    """Return the ground truth of a recorded assistant turn."""
    domain = domain_of(source_id)
    if domain is Domain.WORKFLOW:
        return Truth(domain, truth_intents(recorded.get("intent_codes")))
    actions = bash_actions(recorded.get("tool_calls"))
    return Truth(domain, actions.names, actions.stages)


def answer_of(domain: Domain, turn: dict[str, Json]) -> Answer:
    """Return what a candidate's turn contributes to its domain's rule."""
    if domain is Domain.WORKFLOW:
        intent = model_intent(turn.get("reasoning_content"), turn.get("content"))
        return Answer(intent=intent)
    return Answer(actions=bash_actions(turn.get("tool_calls")))


def turn_score(truth: Truth, answer: Answer) -> float:
    """Return the unrounded score of a turn that has ground truth."""
    if truth.domain is Domain.WORKFLOW:
        return 1.0 if answer.intent in truth.names else 0.0
    return overlap(truth.names, answer.actions.names).score
