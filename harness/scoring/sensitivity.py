"""One recorded episode under many declared policies: a verdict of three values.

The conversation was held under the run's own policy. Each policy here changes one
rule of it. Where the policy calls a turn wrong that the run went on from, the episode
would have ended there, as the candidate's. Where it calls the turn right on which the
run ended, what came next was never asked, so the verdict is unknown, unless nothing
was to come. What ended for any other reason is judged as the run judged it; a stop is
no success under every policy. Diagnostic: no headline is made of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from harness.conversation.matching import TurnMatch
from harness.conversation.script import ScriptedCall, ScriptedTurn
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import Attempt, Episode, ObservedTurn
from harness.evidence.records import Record
from harness.scoring.executable import SUCCEEDED
from harness.scoring.first_response import first_response
from harness.scoring.reading import ScorableTask, expected_calls
from harness.scoring.records import TaskScore
from harness.scoring.relaxed import (
    AskedTurn,
    fits,
    judge,
    judge_relaxed,
    largest_matching,
)

SENSITIVITY_VERSION: Final = "1.0"
PolicyName = Literal[
    "typed",
    "int-equals-float",
    "defaults-inserted",
    "defaults-ignored",
    "extra-arguments",
    "strings-folded",
    "order-free",
    "groups-free",
    "strict-002",
]
POLICY_NAMES: Final[tuple[PolicyName, ...]] = get_args(PolicyName)
BASELINE: Final[PolicyName] = "typed"
DESCRIPTIONS: Final[dict[PolicyName, str]] = {
    "typed": "the run's own policy: types are compared before values",
    "int-equals-float": "an integer equals a float of the same value, at any depth",
    "defaults-inserted": "declared defaults are filled in before comparing",
    "defaults-ignored": "arguments are compared as sent, declared defaults or not",
    "extra-arguments": "arguments that the gold call does not have are tolerated",
    "strings-folded": "strings are compared in NFC, without case, blanks squeezed",
    "order-free": "calls of one turn may come in any order",
    "groups-free": "gold calls of successive call turns may be split or joined",
    "strict-002": "the first response decides; a broken 200 is the candidate's",
}
_BY_POLICY: Final = frozenset({"defaults-inserted", "defaults-ignored", "order-free"})
"""Policies that the contract itself can state; the others are diagnostic rules."""
VerdictValue = Literal["success", "failure", "stop", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict(Record):
    """What one policy makes of one episode."""

    value: VerdictValue
    reason_code: str
    turn_index: int | None
    """The turn that decides where the policy leaves the run's own reading."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One episode as the run's own policy has scored it."""

    task: ScorableTask
    episode: Episode
    score: TaskScore
    strict_score: TaskScore
    """The score of the same episode under `strict-002`."""
    attempts: tuple[tuple[Attempt, ...], ...]
    """Every recorded exchange of each turn, in order."""


def verdicts(judged: Judged) -> dict[PolicyName, Verdict]:
    """Return the verdict of every policy on one episode."""
    return {name: _verdict(judged, name) for name in POLICY_NAMES}


def recorded_verdict(score: TaskScore, reason_code: str = "as_recorded") -> Verdict:
    """Return a score's own verdict."""
    if score.task_success:
        return Verdict("success", reason_code, None)
    value: VerdictValue = "stop" if score.non_candidate_stop else "failure"
    return Verdict(value, reason_code, None)


def _verdict(judged: Judged, name: PolicyName) -> Verdict:
    if name == "typed":
        return recorded_verdict(judged.score)
    if name == "strict-002":
        return _strict_002(judged)
    policy = _changed(judged.score.scoring_policy, name)
    if name in _BY_POLICY and policy == judged.score.scoring_policy:
        return recorded_verdict(judged.score)
    return _Walk(judged, name, policy).verdict()


def _changed(policy: ScoringPolicy, name: PolicyName) -> ScoringPolicy:
    if name == "defaults-inserted":
        return replace(policy, insert_declared_defaults=True)
    if name == "defaults-ignored":
        return replace(policy, insert_declared_defaults=False)
    if name == "order-free":
        return replace(policy, respect_call_order=False)
    return policy


def _strict_002(judged: Judged) -> Verdict:
    for turn_index, attempts in enumerate(judged.attempts):
        decided = first_response(attempts)
        if decided == "broken":
            return Verdict("failure", "first_response_broken", turn_index)
        if decided == "undecided":
            return Verdict("unknown", "first_response_undecided", turn_index)
    return recorded_verdict(judged.strict_score)


@dataclass(slots=True)
class _Walk:
    """One policy's reading of the recorded turns, in order."""

    judged: Judged
    name: PolicyName
    policy: ScoringPolicy

    def verdict(self) -> Verdict:
        issued: list[str] = []
        script = self.judged.task.spec.script
        for observed in self.judged.episode.turns:
            if observed.call_status != "completed" or observed.matched is None:
                break
            scripted = script.turns[observed.turn_index]
            turn = self._asked(scripted, observed, tuple(issued))
            matched, is_last = self._match(turn)
            if observed.matched and not matched:
                if not observed.advanced:
                    break
                return self._ended_earlier(observed.turn_index)
            if matched and not observed.matched:
                if self.judged.episode.status != "candidate_mismatch":
                    break
                return self._goes_on(observed, is_last=is_last)
            issued += [call.function_name or "" for call in observed.tool_calls]
        return recorded_verdict(self.judged.score)

    def _asked(
        self, scripted: ScriptedTurn, observed: ObservedTurn, issued: tuple[str, ...]
    ) -> AskedTurn:
        judged = self.judged
        return AskedTurn(
            scripted=scripted,
            expected=expected_calls(scripted, judged.episode, judged.task),
            text=observed.text,
            tool_calls=observed.tool_calls,
            incomplete=observed.wire_class in ("truncated", "content_filter"),
            issued_names=issued,
        )

    def _match(self, turn: AskedTurn) -> tuple[bool, bool]:
        """Return whether the turn matches, and whether the script ends with it."""
        task, is_last = self.judged.task, turn.scripted.is_terminal
        if self.name == "groups-free":
            return self._match_regrouped(turn)
        match: TurnMatch
        if self.name in ("int-equals-float", "extra-arguments", "strings-folded"):
            match = judge_relaxed(turn, task, self.policy, self.name)
        else:
            match = judge(turn, task, self.policy)
        return match.matched, is_last

    def _match_regrouped(self, turn: AskedTurn) -> tuple[bool, bool]:
        """Match the calls with those that may be due: this group and what follows."""
        task, scripted = self.judged.task, turn.scripted
        if judge(turn, task, self.policy).matched:
            return True, scripted.is_terminal
        due, run_ends = _due(task, turn, self.judged.episode)
        made = len(turn.tool_calls)
        if not scripted.expects_calls or not 0 < made <= len(due):
            return False, False
        chosen = self._chosen(turn, due)
        if chosen is None:
            return False, False
        regrouped = replace(
            turn, scripted=replace(scripted, calls=chosen), expected=chosen
        )
        match = judge(regrouped, task, self.policy)
        return match.matched, made == len(due) and run_ends

    def _chosen(
        self, turn: AskedTurn, due: Sequence[ScriptedCall]
    ) -> tuple[ScriptedCall, ...] | None:
        """Return the gold call of each made call; None where one has none."""
        task = self.judged.task
        if self.policy.respect_call_order and task.spec.script.call_order == "strict":
            return tuple(due[: len(turn.tool_calls)])
        pairs = largest_matching(
            [
                [fits(call, gold, turn, task, self.policy) for gold in due]
                for call in turn.tool_calls
            ]
        )
        found = tuple(due[pair] for pair in pairs if pair is not None)
        return found if len(found) == len(pairs) else None

    def _ended_earlier(self, turn_index: int) -> Verdict:
        if self.policy.task_success == "assertions_only":
            return Verdict("unknown", "state_not_recorded", turn_index)
        return Verdict("failure", "ends_earlier", turn_index)

    def _goes_on(self, observed: ObservedTurn, *, is_last: bool) -> Verdict:
        """Judge an episode whose last turn is right under the policy."""
        turn_index = observed.turn_index
        if not is_last:
            return Verdict("unknown", "evidence_ends_early", turn_index)
        execution = self.judged.episode.execution
        if execution is None:
            return Verdict("success", "last_turn_matches", turn_index)
        ran = all(
            execution.executions[index].status in SUCCEEDED
            for index in observed.execution_indexes
        )
        if not ran:
            return Verdict("unknown", "call_never_ran", turn_index)
        return self._by_state(turn_index)

    def _by_state(self, turn_index: int) -> Verdict:
        """Judge by what was recorded of the state that the last turn left."""
        score = self.judged.score
        gates = [score.gate("commit_state_known"), score.gate("assertions")]
        if any(gate.reason_code.endswith(".evidence_missing") for gate in gates):
            return Verdict("unknown", "state_not_recorded", turn_index)
        if any(gate.outcome == "failed" for gate in gates):
            return Verdict("failure", "state_is_wrong", turn_index)
        return Verdict("success", "last_turn_matches", turn_index)


def _due(
    task: ScorableTask, turn: AskedTurn, episode: Episode
) -> tuple[list[ScriptedCall], bool]:
    """Return the gold calls that nothing but grouping keeps from this turn.

    They end at a text turn, where the user speaks, and at a turn that takes a value
    from a live result. Also tells whether the script ends with them.
    """
    part = task.spec.executable
    waiting = {d.consumer_turn_index for d in part.dependencies} if part else set()
    due = list(turn.expected)
    last = turn.scripted
    for later in task.spec.script.turns[last.turn_index + 1 :]:
        if (
            last.releases_user_message is not None
            or not later.expects_calls
            or later.turn_index in waiting
        ):
            break
        due += expected_calls(later, episode, task)
        last = later
    return due, last.is_terminal
