"""Which other policies recorded evidence can be scored under, and why not others.

A conversation was held under one policy. Rules that the driver never asked can be
changed freely. A rule that it did ask can be changed where the recorded conversation
holds all that the changed rule would have asked for. `rescorability` says so once,
when a record is written; `support` decides it for one episode and one policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final, Literal

from harness.canonical import Json
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import Attempt, Episode, Scope
from harness.scoring.first_response import BROKEN_200, first_response
from harness.scoring.reading import Reading, ScorableTask, read_episode

RESCORABLE_VERSION: Final = "1.0"
RefusalCode = Literal[
    "contract_hash_mismatch",
    "repair_forbidden",
    "trace_only_evidence",
    "assertions_missing",
    "evidence_ends_early",
    "conversation_ends_earlier",
    "pairing_differs",
    "first_response_differs",
    "first_response_undecided",
]
REFUSALS: Final[dict[RefusalCode, str]] = {
    "contract_hash_mismatch": "the evidence was recorded under another contract",
    "repair_forbidden": "nothing repairs a candidate's output before it is scored",
    "trace_only_evidence": "assertions need an executed task; this is a trace",
    "assertions_missing": "the task declares no assertion",
    "evidence_ends_early": "the policy goes on where the recorded conversation ended",
    "conversation_ends_earlier": "the policy ends the conversation before the record "
    "does, in a state that nobody has read",
    "pairing_differs": "the policy pairs calls with other gold calls than the run did",
    "first_response_differs": "a broken 200 was asked again and would have decided",
    "first_response_undecided": "the first response was never decoded",
}
Support = Literal["as_recorded", "replayed"]
"""`replayed`: by walking the recorded answers again, which ends no later."""

_ASKED_BY_DRIVER: Final = (
    "argument_matching",
    "insert_declared_defaults",
    "respect_call_order",
    "intermediate_text_matching",
)


def rescorability(scope: Scope) -> dict[str, Json]:
    """Return what a record says of its own rescorability.

    For each rule of a policy: `always` or `never` may it be changed, or `by_episode`,
    with the codes that a refusal can have.
    """
    executed = scope != "trace"
    walk = ["evidence_ends_early"]
    if executed:
        walk += ["conversation_ends_earlier", "pairing_differs"]
    rules: dict[str, tuple[str, list[str]]] = {
        "contract_hash": ("never", ["contract_hash_mismatch"]),
        "allow_llm_repair": ("never", ["repair_forbidden"]),
        "respect_call_group": ("always", []),
        "attribution": (
            "by_episode",
            ["first_response_differs", "first_response_undecided"],
        ),
        "task_success": ("by_episode", ["assertions_missing"])
        if executed
        else ("never", ["trace_only_evidence"]),
        **dict.fromkeys(_ASKED_BY_DRIVER, ("by_episode", walk)),
    }
    return {
        "schema_version": RESCORABLE_VERSION,
        "rescorable": True,
        "reason_codes": [],
        "rules": {
            rule: {"support": support, "reason_codes": codes}
            for rule, (support, codes) in sorted(rules.items())
        },
    }


def changed_rules(recorded: ScoringPolicy, policy: ScoringPolicy) -> tuple[str, ...]:
    """Return the names of the rules in which two policies differ."""
    return tuple(
        rule.name
        for rule in fields(ScoringPolicy)
        if getattr(recorded, rule.name) != getattr(policy, rule.name)
    )


def support(
    episode: Episode,
    task: ScorableTask,
    policy: ScoringPolicy,
    attempts_by_turn: Sequence[Sequence[Attempt]],
) -> Support | RefusalCode:
    """Tell how one episode can be scored under a policy, or why it cannot."""
    if policy.task_success == "assertions_only":
        part = task.spec.executable
        if part is None or not part.assertions:
            return "assertions_missing"
    if policy.attribution == "strict-002":
        refusal = _first_responses(episode, attempts_by_turn)
        if refusal is not None:
            return refusal
    return _walk(read_episode(episode, task, policy))


def _first_responses(
    episode: Episode, attempts_by_turn: Sequence[Sequence[Attempt]]
) -> RefusalCode | None:
    for turn, attempts in zip(episode.turns, attempts_by_turn, strict=True):
        first = first_response(attempts)
        if first == "undecided":
            return "first_response_undecided"
        if first == "broken" and turn.detail_code not in BROKEN_200:
            return "first_response_differs"
    return None


def _walk(reading: Reading) -> Support | RefusalCode:
    executed = reading.executable is not None
    result: Support = "as_recorded"
    for turn in reading.turns:
        observed, match = turn.observed, turn.match
        if observed is None or match is None or observed.matched is None:
            continue
        if match.matched and not observed.matched:
            if executed or not turn.scripted.is_terminal:
                return "evidence_ends_early"
            return "replayed"
        if observed.matched and not match.matched:
            return "conversation_ends_earlier" if executed else "replayed"
        if match.paired_call_indexes != observed.paired_call_indexes:
            if executed:
                return "pairing_differs"
            result = "replayed"
    return result
