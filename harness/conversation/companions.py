"""Marks that are counted beside the score and never change it.

Prose is looked at for these counts only, never for a class or a gate. The marker
list is versioned: another list is another count (`design/interfaces.md` 6).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal

from harness.canonical import Json
from harness.evidence.episode import CandidateResponse, ToolCall
from harness.strict_json import StrictJsonError, decode

MARKER_LIST: Final = "call-markup-1"
CALL_MARKERS: Final = (
    "<tool_call>",
    "<|tool_call",
    "<function=",
    "<function_call>",
    "<invoke name=",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "to=functions.",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<|tool_calls_section_begin|>",
    "```tool_code",
)
"""Substrings by which the known dialects open a call."""

Companion = Literal[
    "suspected_call_markup",
    "suspected_truncation",
    "serving_parse_loss",
    "arguments_empty",
]

COMPLETION_CLAIMS: Final = frozenset(
    {
        "stop",
        "tool_calls",
        "function_call",
        "end_turn",
        "tool_use",
        "stop_sequence",
        "eos",
        "eos_token",
    }
)
"""Finish reasons by which a server says that the generation is whole (A3 row 20)."""

_FENCE: Final = "```"


def turn_companions(
    response: CandidateResponse,
    *,
    expects_calls: bool,
    tool_names: Collection[str],
    max_tokens: int | None,
) -> tuple[Companion, ...]:
    """Return the marks of one answered turn, in a fixed order.

    `max_tokens` is the cap that the request carried, None where it carried none.
    """
    calls = response.tool_calls
    marks: list[Companion] = []
    markup = suspected_call_markup(response.text or "", tool_names)
    if markup:
        marks.append("suspected_call_markup")
    if suspected_truncation(calls, response.finish_reason, response.usage, max_tokens):
        marks.append("suspected_truncation")
    if markup and not calls and expects_calls:
        marks.append("serving_parse_loss")
    if arguments_empty(calls):
        marks.append("arguments_empty")
    return tuple(marks)


def suspected_call_markup(text: str, tool_names: Collection[str]) -> bool:
    """Tell whether a text looks like a call that nobody parsed."""
    if not text:
        return False
    for marker in CALL_MARKERS:
        if marker in text:
            return True
    body = _without_fence(text.strip())
    if body[:1] not in ("{", "["):
        return False
    try:
        value = decode(body)
    except StrictJsonError:
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(_is_call(call, tool_names) for call in calls)


def suspected_truncation(
    tool_calls: tuple[ToolCall, ...],
    finish_reason: str | None,
    usage: dict[str, Any] | None,
    max_tokens: int | None,
) -> bool:
    """Tell whether a generation was cut although its finish reason claims an end.

    Either the arguments of a call end before their JSON does, or the reported
    completion tokens reach the cap of the request (wire contract B12).
    """
    if finish_reason not in COMPLETION_CLAIMS:
        return False
    for call in tool_calls:
        if call.arguments_status == "invalid_json" and ends_inside_json(
            call.raw_arguments
        ):
            return True
    used = usage.get("completion_tokens") if usage is not None else None
    return type(used) is int and max_tokens is not None and used >= max_tokens


def arguments_empty(tool_calls: tuple[ToolCall, ...]) -> bool:
    """Tell whether a call has blank text where its arguments belong (B02)."""
    for call in tool_calls:
        raw = call.raw_arguments
        if isinstance(raw, str) and not raw.strip():
            return True
    return False


def ends_inside_json(text: Json) -> bool:
    """Tell whether a text opens an object or array and ends before closing it."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return False
    open_brackets: list[str] = []
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "{[":
            open_brackets.append(character)
        elif character in "}]":
            if not open_brackets or open_brackets.pop() + character not in ("{}", "[]"):
                return False
            if not open_brackets:
                return False
    return True


def _without_fence(text: str) -> str:
    if len(text) < 2 * len(_FENCE) or not (
        text.startswith(_FENCE) and text.endswith(_FENCE)
    ):
        return text
    body = text[len(_FENCE) : -len(_FENCE)]
    info, newline, rest = body.partition("\n")
    if newline and "{" not in info and "[" not in info:
        body = rest
    return body.strip()


def _is_call(value: Json, tool_names: Collection[str]) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and value["name"] in tool_names
        and any(isinstance(value.get(key), dict) for key in ("arguments", "parameters"))
    )
