"""Recorded evidence as another policy reads it, or the reasons why it cannot be.

An executed conversation is read as it was recorded. A trace is walked again under the
policy, which may end it earlier; nothing that was never recorded is made up. All
episodes are looked at before the first is scored, so a refusal names every reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.conversation.task import ScoringPolicy
from harness.errors import ScoringError, Violation
from harness.evidence.episode import Scope
from harness.run.recorded import Evidence, RecordedEpisode, concluded
from harness.run.score import readable
from harness.scoring.reading import ScorableTask
from harness.scoring.rescorable import (
    REFUSALS,
    RefusalCode,
    changed_rules,
    rescorability,
    support,
)


class RescoredEvidence(Evidence):
    """The evidence of a run under a policy that every episode supports."""

    def __init__(
        self, parent: Evidence, policy: ScoringPolicy, *, known_supported: bool = False
    ) -> None:
        """Look at every episode, unless the policy is the run's own or was found good.

        Raises ScoringError (`eval_*_scoring_policy_unsupported`) with one violation
        for each reason code.
        """
        self._parent = parent
        self.config = replace(
            parent.config,
            scoring_policy=policy,
            scoring_policy_hash=policy.identity_hash(),
        )
        self.plan = parent.plan
        self.candidate_log = parent.candidate_log
        self.episode_log = parent.episode_log
        if policy != parent.config.scoring_policy and not known_supported:
            self._require_support()

    async def episode(
        self, endpoint: Endpoint, task: ScorableTask, trial: int
    ) -> RecordedEpisode:
        """Return one episode as the policy reads it."""
        if self.episode_log is None:
            return await super().episode(endpoint, task, trial)
        return await self._parent.episode(endpoint, task, trial)

    def _require_support(self) -> None:
        policy = self.config.scoring_policy
        counts: Counter[RefusalCode] = Counter()
        examples: dict[RefusalCode, str] = {}
        episodes = 0
        for planned in self.plan.header.candidates:
            endpoint = Endpoint(**self.config.endpoint(planned.alias))
            for task in self._parent.tasks_of(planned):
                for trial in range(self.plan.header.trials):
                    where = f"task {task.spec.task_id}, trial {trial}"
                    with readable(where):
                        recorded = concluded(
                            self._parent.episode(endpoint, task, trial)
                        )
                        found = support(
                            recorded.episode, task, policy, recorded.attempts_by_turn
                        )
                    episodes += 1
                    if found != "as_recorded" and found != "replayed":  # noqa: PLR1714
                        counts[found] += 1
                        examples.setdefault(
                            found, f"candidate {planned.alias}, {where}"
                        )
        if counts:
            raise _unsupported(self.plan.header.scope, counts, examples, episodes)


def require_changeable(
    stated: Json, scope: Scope, recorded: ScoringPolicy, policy: ScoringPolicy
) -> None:
    """Refuse a change of a rule that the record says can never be changed.

    `stated` is the record's own `rescorable`; None for a record without any.
    """
    rules = (stated or rescorability(scope))["rules"]
    codes: list[RefusalCode] = [
        code
        for rule in changed_rules(recorded, policy)
        if rules[rule]["support"] == "never"
        for code in rules[rule]["reason_codes"]
    ]
    if codes:
        raise ScoringError(
            _code(scope),
            "the record does not support this policy",
            violations=tuple(
                _violation(scope, code, "every episode") for code in codes
            ),
        )


def _unsupported(
    scope: Scope,
    counts: Counter[RefusalCode],
    examples: dict[RefusalCode, str],
    episodes: int,
) -> ScoringError:
    violations = tuple(
        _violation(
            scope,
            code,
            f"{counts[code]} of {episodes} episodes; first {examples[code]}",
        )
        for code in sorted(counts)
    )
    return ScoringError(
        _code(scope), "the evidence does not support this policy", violations=violations
    )


def _violation(scope: Scope, code: RefusalCode, where: str) -> Violation:
    return Violation(
        _code(scope),
        where,
        f"{code}: {REFUSALS[code]}",
        expected="evidence of all that the policy would have asked for",
        recovery="`fairtrial sensitivity RUN` gives bounds; a run under the policy "
        "gives a score",
    )


def _code(scope: Scope) -> str:
    mode = "trace" if scope == "trace" else "executable"
    return f"eval_{mode}_scoring_policy_unsupported"
