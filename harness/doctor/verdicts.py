"""What one probe's outcome says about an endpoint.

The outcome is the client's, so a response means here what it will mean in a run. A
verdict is `good`, `costs` (with what a model loses by it) or `cannot_tell`: whoever
is down, overloaded or refuses the key has not been examined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from harness.canonical import json_equal
from harness.conversation.companions import turn_companions
from harness.doctor.probes import CUT_TOKENS, READING, Name, Probe
from harness.evidence.episode import Attempt, CandidateResponse, Outcome, ToolCall
from harness.json_schema import compile_tools

Verdict = Literal["good", "costs", "cannot_tell"]

_UNEXAMINED: Final = frozenset(
    {
        "rate_limited",
        "timeout",
        "transport_error",
        "provider_unavailable",
        "quota_exhausted",
    }
)
_NOWHERE: Final = frozenset({404, 405, 501})
"""No such path or model: nothing was examined."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one probe."""

    verdict: Verdict
    seen: str
    cost: str = ""
    """What a model loses by it; empty unless the verdict is `costs`."""


def judge(probe: Probe, outcome: Outcome, attempt: Attempt | None) -> Finding:
    """Return the verdict on one probe; `attempt` is the last exchange of it."""
    response = outcome.response
    if response is None:
        return _unanswered(outcome, attempt)
    if outcome.wire_class == "candidate_malformed":
        return _malformed(probe, outcome, response)
    if probe.name == "truncation":
        return _truncation(outcome, response)
    if outcome.wire_class == "truncated":
        return Finding(
            "costs",
            f"cut at {probe.max_tokens} tokens",
            "an answer that is cut counts against the model; raise max_tokens",
        )
    if outcome.wire_class == "content_filter":
        return Finding(
            "costs",
            "a filter held the output back",
            "a filtered output counts against the model",
        )
    if probe.expected:
        return _calls(probe, response)
    return _JUDGES[probe.name](probe, response)


def _unanswered(outcome: Outcome, attempt: Attempt | None) -> Finding:
    detail = outcome.detail_code or outcome.status
    seen = f"{detail}: {outcome.detail}" if outcome.detail else detail
    status = None if attempt is None else attempt.http_status
    if detail in _UNEXAMINED or status in _NOWHERE:
        return Finding("cannot_tell", seen)
    if outcome.wire_class == "candidate_malformed":
        cost = "the endpoint refuses what the model wrote; it counts against the model"
    elif outcome.wire_class == "content_filter":
        cost = "a filter refuses the request; the episode stops and earns nothing"
    else:
        cost = "an episode that comes to this stops and earns nothing"
    return Finding("costs", seen, cost)


def _malformed(probe: Probe, outcome: Outcome, response: CandidateResponse) -> Finding:
    detail = outcome.detail_code or "malformed"
    seen = detail
    if probe.name == "truncation":
        seen += f", finish reason {response.finish_reason}"
    texts = [repr(call.raw_arguments)[:60] for call in response.tool_calls]
    if detail.startswith("arguments.") and texts:
        seen += f": {', '.join(texts)}"
    if detail == "unusable_tool_call_ids":
        return Finding(
            "costs", seen, "every task with a call fails: its ids cannot be answered"
        )
    return Finding("costs", seen, "such a call counts against the model, unrepaired")


def _calls(probe: Probe, response: CandidateResponse) -> Finding:
    """Judge a probe that expects certain calls."""
    if not response.tool_calls:
        return _no_call(probe, response)
    made = [
        (c.function_name or "", c.parsed_arguments or {}) for c in _by_name(response)
    ]
    wanted = sorted(probe.expected, key=str)
    if len(made) == len(wanted) and all(
        name == gold and json_equal(arguments, exact)
        for (name, arguments), (gold, exact) in zip(made, wanted, strict=True)
    ):
        return Finding("good", f"{_count(len(made))} as asked")
    return Finding("costs", _shown(response.tool_calls), _loss(probe, response))


def _by_name(response: CandidateResponse) -> list[ToolCall]:
    return sorted(
        response.tool_calls, key=lambda c: str((c.function_name, c.parsed_arguments))
    )


def _loss(probe: Probe, response: CandidateResponse) -> str:
    catalog = compile_tools(probe.tools)
    if len(response.tool_calls) != len(probe.expected):
        return "tasks with a group of calls fail: the group has another size"
    if any(
        catalog.failures(c.function_name or "", c.parsed_arguments or {})
        for c in response.tool_calls
    ):
        return "calls that break their own schema fail the task"
    return "calls with other values than the user gave fail the task"


def _no_call(probe: Probe, response: CandidateResponse) -> Finding:
    marks = turn_companions(
        response,
        expects_calls=True,
        tool_names=compile_tools(probe.tools).names,
        max_tokens=None,
    )
    if "serving_parse_loss" in marks:
        return Finding(
            "costs",
            f"the call stands in the text: {_quoted(response.text)}",
            "every call is lost: the server has no parser for this model's calls",
        )
    return Finding(
        "costs",
        f"no call, but the text {_quoted(response.text)}",
        "tasks that need a call fail: tools do not reach the model, or it ignores them",
    )


def _truncation(outcome: Outcome, response: CandidateResponse) -> Finding:
    if outcome.wire_class == "truncated":
        return Finding("good", f"cut, and finish reason {response.finish_reason}")
    seen = f"finish reason {response.finish_reason} at max_tokens {CUT_TOKENS}"
    if len(response.text or "") > CUT_TOKENS * 20:
        return Finding(
            "costs", seen, "max_tokens is not kept: answers are longer than agreed"
        )
    return Finding(
        "costs", seen, "an answer that was cut looks whole and is judged as it stands"
    )


def _refusal(_: Probe, response: CandidateResponse) -> Finding:
    if response.tool_calls:
        return Finding(
            "costs",
            f"a call nobody asked for: {_shown(response.tool_calls)}",
            "tasks that need an answer in words fail",
        )
    return _words(response)


def _words(response: CandidateResponse) -> Finding:
    text = response.text or ""
    if not text.strip():
        return Finding(
            "costs", "neither a call nor words", "turns that need words fail as empty"
        )
    if turn_companions(response, expects_calls=False, tool_names=(), max_tokens=None):
        return Finding(
            "costs",
            f"call markup in the text: {_quoted(text)}",
            "calls end up in the text, where nobody looks for them",
        )
    return Finding("good", f"words: {_quoted(text)}")


def _long_ids(_: Probe, response: CandidateResponse) -> Finding:
    if response.tool_calls:
        return Finding("good", "accepted; the model calls again")
    return _words(response)


def _results(_: Probe, response: CandidateResponse) -> Finding:
    if READING in (response.text or ""):
        return Finding("good", f"the result is in the answer: {_quoted(response.text)}")
    seen = (
        _shown(response.tool_calls) if response.tool_calls else _quoted(response.text)
    )
    return Finding(
        "costs",
        f"the result {READING} is not in the answer: {seen}",
        "tasks that build on a result fail: results do not reach the model",
    )


def _tool_choice(_: Probe, response: CandidateResponse) -> Finding:
    if response.tool_calls:
        return Finding("good", "a call, as required")
    return Finding(
        "costs",
        f"no call, but the text {_quoted(response.text)}",
        "`tool_choice: required` in a config has no effect here",
    )


_JUDGES: Final[dict[Name, Callable[[Probe, CandidateResponse], Finding]]] = {
    "refusal to call": _refusal,
    "long ids": _long_ids,
    "tool results": _results,
    "tool choice": _tool_choice,
}


def _count(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"


def _shown(calls: tuple[ToolCall, ...]) -> str:
    texts = [f"{call.function_name}({call.raw_arguments})" for call in calls]
    return _capped(f"{_count(len(calls))}: {', '.join(texts)}")


def _quoted(text: str | None) -> str:
    return _capped(repr(text or ""))


def _capped(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."
