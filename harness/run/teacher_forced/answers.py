"""What of a received completion the contract reads: text, reasoning and calls.

It is passed on as it came. What the contract's log cannot hold is left out: a message
that is no message gives an empty answer.
"""

from __future__ import annotations

from typing import Final

from harness.canonical import Json
from harness.evidence.episode import CandidateResponse
from harness.scoring.mlperf_agentic.conversation_ids import Domain
from harness.scoring.mlperf_agentic.events import OUTPUT_TAG
from harness.scoring.mlperf_agentic.model_output import finished_calls, model_output
from harness.scoring.mlperf_agentic.turns import Truth, answer_of, turn_score

_REASONING_KEYS: Final = ("reasoning_content", "reasoning")


def output_data(response: CandidateResponse | None) -> list[Json]:
    """Return a completion as the `data` of its event."""
    message = {} if response is None else response.message or {}
    calls = message.get("tool_calls")
    reasoning = (message.get(key) for key in _REASONING_KEYS)
    return [
        OUTPUT_TAG,
        "" if response is None else response.text or "",
        next((text for text in reasoning if isinstance(text, str) and text), None),
        calls if isinstance(calls, list) and calls else None,
    ]


def answer_score(truth: Truth, response: CandidateResponse | None) -> float:
    """Return the score of one answer to a turn with ground truth, unrounded."""
    output = model_output(output_data(response)[1:])
    turn: dict[str, Json] = {
        "content": output.content,
        "reasoning_content": output.reasoning,
    }
    if truth.domain is Domain.CODING:
        turn["tool_calls"] = finished_calls(output.tool_calls).calls
    return turn_score(truth, answer_of(truth.domain, turn))
