"""The sections of an `mlperf-agentic` config as closed, frozen, strictly typed models.

One data set of recorded conversations, one candidate, and how the recorded turns are
put to it. The candidate's section is that of the kind `executable`. The text under a
key is its line in the reference.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from harness.config.document import CandidateSection, Closed
from harness.config.values import Count, Parallel, Positive, Seconds, Share, Text

KIND: Final = "mlperf-agentic"
ROUTING_HEADER: Final = "X-Session-ID"
"""The original's own choice."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_TAKEN_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)


def _header_name(value: str) -> str:
    if _HEADER_NAME.fullmatch(value) and value.lower() not in _TAKEN_HEADERS:
        return value
    context = {
        "problem": "a name that no routing header may have",
        "want": "letters, digits and `-`, and no header that a request has anyway",
    }
    raise PydanticCustomError("eval_config_invalid", "{problem}", context)


Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
HeaderName = Annotated[str, AfterValidator(_header_name)]
Delay = Annotated[float, Field(ge=0, le=86_400)]


class DatasetSection(Closed):
    """The recorded conversations."""

    path: Text
    """JSON lines or Parquet, one row a message."""
    sha256: Sha256 | None
    """Refuse any other file; null: any."""


class AskingSection(Closed):
    """How the recorded turns are put to the candidate."""

    repeats: Positive
    """How often every conversation is asked; the second pass has ids that end in
    `__repeat_2`."""
    salt: Text | None
    """Text from which a marker of four hex digits before the system prompt is made
    for each repeat, and one after it for each conversation of it, so that no server
    answers from a cache. null: no markers."""
    inject_tool_delay: bool
    """Whether a row's `delay_seconds` is waited before it is sent."""
    inter_turn_delay_s: Delay
    """Seconds between an answer and the next turn of its conversation, added to
    those of the row; 0.0: none."""
    routing_header: HeaderName | None
    """Header that carries the conversation's id, so that a router can keep a
    conversation on one server; null: none."""
    on_failed_turn: Literal["continue", "abort_conversation"]
    """Whether the turns after a failed one are asked all the same, for their history
    is recorded, or are given up, as the original does."""
    row_overrides: bool
    """Whether sampling fields and caps of tokens that a row holds replace the
    candidate's; a row's `model` never does."""


class AskingLimits(Closed):
    """Deadlines in seconds, and the bounds of one run."""

    candidate_timeout_s: Seconds
    """One turn, all its attempts together."""
    max_parallel_conversations: Parallel
    """Conversations in flight; each has one turn in flight."""
    max_retries: Count
    """More attempts while no completion exists."""
    max_stops: Count
    """The run gives up when more turns than this have failed."""


class SharePublication(Closed):
    """When the score stands."""

    max_stop_share: Share
    """Largest share of unanswered turns under which a score is published."""


class OutputFolder(Closed):
    """Where the run is written."""

    output_dir: Text
    """One folder for one run; it is the report folder of the score too."""


OneCandidate = Annotated[
    tuple[CandidateSection, ...], Field(strict=False, min_length=1, max_length=1)
]


class TeacherForcedDocument(Closed):
    """The whole file, kind `mlperf-agentic`."""

    schema_version: Literal["1"]
    """Version of this set of keys."""
    config_status: Literal["ready"]
    """Says that the file is complete."""
    kind: Literal["mlperf-agentic"]
    """Which set of keys the file has."""
    dataset: DatasetSection
    asking: AskingSection
    limits: AskingLimits
    candidates: OneCandidate
    """Exactly one, for a run has one event log. `echo_reasoning` says whether the
    recorded reasoning is sent with the history."""
    publication: SharePublication
    outputs: OutputFolder
