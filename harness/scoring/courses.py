"""Trace episodes of a task that went the same way have the same verdict.

The course of an episode is all that a verdict may read of it: every field but those
that name the episode and its exchanges. What a turn said counts by whether it said
anything and whether that is the script's text, its calls by what they ask for. So the
repeated trials of a task are judged once for each course that they took. An executed
episode has results and states of its own and is always judged whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from harness.canonical import canonical_json, hash_bytes
from harness.conversation.matching import has_text
from harness.conversation.script import ConversationScript
from harness.evidence.episode import Episode, ObservedTurn
from harness.scoring.records import TaskScore

MOST_KEPT: Final = 256
"""Courses that are kept for one task; at the next one all are forgotten."""
NAMING_EPISODE: Final = frozenset(
    {"trial", "turns", "events", "execution", "attempt", "replayed", "duration_s"}
)
"""Fields of an episode that are no part of its course, or enter it turn by turn."""
NAMING_TURN: Final = frozenset(
    {
        "request_hash",
        "response_hash",
        "released_user_message_hash",
        "text",
        "tool_calls",
    }
)
Course = tuple[object, ...]


def _all_but(record: Any, names: frozenset[str]) -> Callable[[Any], Any]:
    kept = (field.name for field in fields(record) if field.name not in names)
    return attrgetter(*kept)


_of_episode = _all_but(Episode, NAMING_EPISODE)
_of_turn = _all_but(ObservedTurn, NAMING_TURN)


def course_of(episode: Episode, script: ConversationScript) -> Course:
    """Return the course of a trace episode."""
    turns = script.turns
    return (
        _of_episode(episode),
        tuple(
            [
                (
                    _of_turn(turn),
                    has_text(turn.text),
                    turn.turn_index < len(turns)
                    and turn.text == turns[turn.turn_index].expected_assistant_content,
                    turn.tool_calls and _asked(turn),
                )
                for turn in episode.turns
            ]
        ),
    )


def _asked(turn: ObservedTurn) -> str:
    return canonical_json(
        [
            (c.type, c.function_name, c.arguments_status, c.parsed_arguments)
            for c in turn.tool_calls
        ]
    )


class Verdict:
    """The score of one course, for each episode that took it."""

    __slots__ = ("_around", "_score")

    def __init__(self, score: TaskScore) -> None:
        """Take the score of the first of them."""
        self._score = score
        self._around: tuple[bytes, bytes, bytes] | None = None
        """The text of its identity around what names the episode."""

    def score_of(self, trial: int, episode_hash: str) -> TaskScore:
        """Return the score of one of them."""
        if self._is_first(trial, episode_hash):
            return self._score
        return self._score.but(trial=trial, episode_hash=episode_hash)

    def hash_of(self, trial: int, episode_hash: str) -> str:
        """Return the hash of that score."""
        if self._is_first(trial, episode_hash):
            return self._score.score_hash
        if self._around is None:
            self._around = _around_names(self._score)
        before, between, after = self._around
        name = episode_hash.encode("ascii")
        return hash_bytes(b"%b%b%b%d%b" % (before, name, between, trial, after))

    def _is_first(self, trial: int, episode_hash: str) -> bool:
        return (self._score.trial, self._score.episode_hash) == (trial, episode_hash)


def _around_names(score: TaskScore) -> tuple[bytes, bytes, bytes]:
    """Cut the text of a score's identity at its episode's hash and at its trial.

    Names are sorted, and no part that comes before these two holds a name of its own
    choice, so the first place that reads so is the field.
    """
    text = score.identity_bytes()
    start, name = b'"episode_hash":"', score.episode_hash.encode("ascii")
    before, _, rest = text.partition(start + name)
    start_of_trial, turns = b'"trial":', b',"turns":['
    between, _, after = rest.partition(b"%b%d%b" % (start_of_trial, score.trial, turns))
    return before + start, between + start_of_trial, turns + after


class Courses:
    """The verdicts of one task by the course of their episodes."""

    def __init__(self) -> None:
        self._verdicts: dict[Course, Verdict] = {}

    def verdict(self, course: Course, judge: Callable[[], TaskScore]) -> Verdict:
        """Return the verdict of a course; `judge` makes the first score."""
        known = self._verdicts.get(course)
        if known is None:
            if len(self._verdicts) == MOST_KEPT:
                self._verdicts.clear()
            known = self._verdicts[course] = Verdict(judge())
        return known
