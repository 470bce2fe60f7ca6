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

from harness.canonical import canonical_json
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


class Courses:
    """The scores of one task by the course of their episodes."""

    def __init__(self) -> None:
        self._scores: dict[Course, TaskScore] = {}

    def score(self, course: Course, judge: Callable[[], TaskScore]) -> TaskScore:
        """Return the score that a course was given; `judge` makes the first one."""
        known = self._scores.get(course)
        if known is None:
            if len(self._scores) == MOST_KEPT:
                self._scores.clear()
            known = self._scores[course] = judge()
        return known
