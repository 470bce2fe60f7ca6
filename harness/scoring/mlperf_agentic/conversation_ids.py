"""What a conversation id says: which repeat it is, and which rule applies."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Domain(StrEnum):
    """The two kinds of conversations, each with its rule."""

    CODING = "coding"
    WORKFLOW = "workflow"


class Conversation(NamedTuple):
    """One pass over a conversation of the data set."""

    source_id: str
    repeat: int
    """1 for the pass that carries the plain id."""


_WORKFLOW: Final = re.compile(r"sim_\d+$")
_REPEAT_MARK: Final = "__repeat_"
_REPEAT: Final = re.compile(r"__repeat_(\d+)$")
_MAX_DIGITS: Final = 18


def domain_of(source_id: str) -> Domain:
    """Return the domain of a conversation of the data set.

    Workflow is `sim_` and digits of any script, one line feed after them tolerated.
    """
    if _WORKFLOW.match(source_id) is None:
        return Domain.CODING
    return Domain.WORKFLOW


def conversation_of(conversation_id: str) -> Conversation:
    """Cut the last repeat suffix off an id of the log.

    A number past 18 digits is no repeat that anybody counted, and stays in the id.
    """
    if _REPEAT_MARK not in conversation_id:
        return Conversation(conversation_id, 1)
    suffix = _REPEAT.search(conversation_id)
    if suffix is None or len(suffix[1]) > _MAX_DIGITS:
        return Conversation(conversation_id, 1)
    return Conversation(conversation_id[: suffix.start()], int(suffix[1]))
