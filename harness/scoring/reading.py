"""An episode read again: each scripted turn with what the evidence says about it.

Nothing that the driver concluded is trusted. Every answered turn is matched again,
against gold in which only dependencies that were *resolved* live are put in, and a
recorded conclusion that differs is an evidence mismatch (see `consistency`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from harness.conversation.dependencies import substitute
from harness.conversation.matching import CallMatch, TurnMatch
from harness.conversation.script import ScriptedCall, ScriptedTurn
from harness.conversation.task import ExecutablePart, ScoringPolicy, TaskSpec
from harness.conversation.turn_matcher import TurnMatcher
from harness.evidence.episode import Episode, ExecutionEvidence, ObservedTurn
from harness.json_schema import ToolCatalog, compile_tools
from harness.scoring.booking import Booking, book
from harness.scoring.courses import Courses

TurnState = Literal["answered", "malformed", "unanswered", "unasked"]
"""`malformed`: a message came and is broken; `unanswered`: asked, no usable message."""


@dataclass(frozen=True, slots=True)
class ScorableTask:
    """A task with what is worked out once and used for each of its episodes."""

    spec: TaskSpec
    script_hash: str
    spec_hash: str | None
    """None where the task has no executable part."""
    catalog: ToolCatalog
    matcher: TurnMatcher = field(compare=False, repr=False)
    courses: Courses = field(compare=False, repr=False)

    @classmethod
    def of(cls, spec: TaskSpec) -> ScorableTask:
        """Hash the task and compile its tools."""
        catalog = compile_tools(spec.script.tools)
        return cls(
            spec,
            spec.script.identity_hash(),
            None if spec.executable is None else spec.identity_hash(),
            catalog,
            TurnMatcher(spec.script, catalog),
            Courses(),
        )


@dataclass(frozen=True, slots=True)
class TurnReading:
    """One scripted turn beside its evidence."""

    scripted: ScriptedTurn
    observed: ObservedTurn | None
    state: TurnState
    match: TurnMatch | None
    """Derived here; None unless a message came."""

    @property
    def index(self) -> int:
        """The turn's position in the script."""
        return self.scripted.turn_index

    @property
    def calls(self) -> tuple[CallMatch, ...]:
        """The candidate's calls with their verdicts; () where no message came."""
        return () if self.match is None else self.match.calls

    @property
    def text_matched(self) -> bool:
        """Whether a text turn was answered in words; a broken message is none."""
        return (
            self.state == "answered"
            and self.match is not None
            and self.match.text_matched is True
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """One episode beside its task, ready for the gates."""

    task: ScorableTask
    episode: Episode
    policy: ScoringPolicy
    booking: Booking
    turns: tuple[TurnReading, ...]
    """One for each scripted turn."""
    judged: tuple[TurnReading, ...]
    """Turns to which a message came, broken or not."""
    unjudged: tuple[TurnReading, ...]
    """Turns that were never asked or never answered."""
    call_turns: tuple[TurnReading, ...]
    """Turns whose script expects calls."""

    @property
    def withholds_evidence(self) -> bool:
        """Whether what a stop prevented is left out of the denominators."""
        return self.booking.is_stop and self.policy.attribution == "wire-1"

    @property
    def cut_short(self) -> bool:
        """Whether the script was not walked to its end."""
        return not all(
            t.observed is not None and t.observed.advanced for t in self.turns
        )

    @property
    def executable(self) -> tuple[ExecutablePart, ExecutionEvidence] | None:
        """The executable half of task and episode; None in trace mode."""
        part, execution = self.task.spec.executable, self.episode.execution
        return None if part is None or execution is None else (part, execution)


def read_episode(
    episode: Episode, task: ScorableTask, policy: ScoringPolicy
) -> Reading:
    """Match every answered turn of an episode again."""
    booking = book(episode, policy)
    issued: list[str] = []
    turns = []
    for scripted in task.spec.script.turns:
        observed = None
        if scripted.turn_index < len(episode.turns):
            observed = episode.turns[scripted.turn_index]
        state = _state(observed, booking)
        match = None
        if observed is not None and state in ("answered", "malformed"):
            match = _match(scripted, observed, episode, task, policy, tuple(issued))
            issued += [call.function_name or "" for call in observed.tool_calls]
        turns.append(TurnReading(scripted, observed, state, match))
    return Reading(
        task,
        episode,
        policy,
        booking,
        tuple(turns),
        tuple([turn for turn in turns if turn.match is not None]),
        tuple([turn for turn in turns if turn.match is None]),
        tuple([turn for turn in turns if turn.scripted.expects_calls]),
    )


def _state(observed: ObservedTurn | None, booking: Booking) -> TurnState:
    if observed is None:
        return "unasked"
    if observed.call_status == "completed":
        return "answered"
    if observed.call_status == "malformed_response" or booking.rebooked:
        return "malformed"
    return "unanswered"


def expected_calls(
    scripted: ScriptedTurn, episode: Episode, task: ScorableTask
) -> tuple[ScriptedCall, ...]:
    """Return a turn's gold calls with the resolved live values put in."""
    part, execution = task.spec.executable, episode.execution
    if part is None or execution is None or not part.dependencies:
        return scripted.calls
    return substitute(scripted.calls, part.dependencies, execution.dependencies)


def _match(
    scripted: ScriptedTurn,
    observed: ObservedTurn,
    episode: Episode,
    task: ScorableTask,
    policy: ScoringPolicy,
    issued: tuple[str, ...],
) -> TurnMatch:
    return task.matcher.match(
        scripted,
        expected_calls(scripted, episode, task),
        text=observed.text,
        tool_calls=observed.tool_calls,
        incomplete=observed.wire_class in ("truncated", "content_filter"),
        policy=policy,
        issued_names=issued,
    )
