"""Why a turn has no output: whose doing, as far as the log tells.

The original counts every one of them as a zero of the model and calls all of them
missing. Here an error record of the turn names the cause; without one it is told
apart whether a completion was recorded at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from harness.scoring.mlperf_agentic.turn_log import IssuedTurn


class Unanswered(StrEnum):
    """The causes, most telling first."""

    TIMEOUT = "timeout"
    ABORTED = "aborted_by_earlier_failure"
    """Never sent: an earlier turn of the conversation failed."""
    CONNECTION = "connection"
    SERVER = "server_error"
    OTHER_ERROR = "other_error"
    COMPLETED_EMPTY = "completed_without_output"
    """A completion without data and without an error record."""
    NOT_COMPLETED = "not_completed"
    """No readable completion: the run was cut, or its line was skipped."""


_EXACT: Final[Mapping[str, Unanswered]] = MappingProxyType(
    {
        "TurnTimeout": Unanswered.TIMEOUT,
        "TurnAbortedByPriorFailure": Unanswered.ABORTED,
        "BrokenPipeError": Unanswered.CONNECTION,
        "IncompleteReadError": Unanswered.CONNECTION,
        "OSError": Unanswered.CONNECTION,
        "gaierror": Unanswered.CONNECTION,
    }
)
_BY_PART: Final = (
    ("Timeout", Unanswered.TIMEOUT),
    ("Connect", Unanswered.CONNECTION),
    ("Disconnected", Unanswered.CONNECTION),
    ("HTTP", Unanswered.SERVER),
    ("Http", Unanswered.SERVER),
    ("ResponseError", Unanswered.SERVER),
    ("Server", Unanswered.SERVER),
)
"""Parts of the class names of common clients, looked for in this order."""


def cause_of(turn: IssuedTurn) -> Unanswered:
    """Return why an issued turn has no output."""
    name = turn.error_type
    if name is not None:
        last = name.rpartition(".")[2]
        exact = _EXACT.get(last)
        if exact is not None:
            return exact
        return next(
            (cause for part, cause in _BY_PART if part in last), Unanswered.OTHER_ERROR
        )
    return Unanswered.COMPLETED_EMPTY if turn.completed else Unanswered.NOT_COMPLETED
