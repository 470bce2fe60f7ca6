"""Decoding of one assistant message: what the candidate said, defects included.

Nothing is repaired, merged, trimmed or decoded twice (`spec/wire-contract.md` A4).
A defect of structure beats one of ids, which beats one of arguments. Text that is
no Unicode (an unpaired surrogate) never leaves this module: records are UTF-8, and
the raw body keeps the bytes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from harness.canonical import Json
from harness.evidence.episode import ArgumentsStatus, ToolCall
from harness.strict_json import (
    StrictJsonError,
    decode_object,
    has_unpaired_surrogate,
)

MALFORMED: Final = "malformed_response"
UNUSABLE_IDS: Final = "unusable_tool_call_ids"

_TEXT_PARTS = frozenset({"text", "output_text"})
_REASONING_PARTS = frozenset(
    {"thinking", "reasoning", "reasoning_text", "redacted_thinking"}
)
_CALL_PARTS = frozenset({"tool_use", "tool_call", "function_call"})
_ECHOED = ("content", "refusal", "tool_calls")
_ECHOED_REASONING = ("reasoning", "reasoning_content", "reasoning_details")


class DecodedMessage(NamedTuple):
    """One message after A4."""

    text: str | None
    """The text, `""` for none; None when it could not be formed."""
    calls: tuple[ToolCall, ...]
    """All calls in array order; empty when one of them cannot be read at all."""
    defect: str | None
    """The detail of A4 that makes the message `candidate_malformed`."""
    echo: dict[str, Json] | None
    """What the next request repeats, as received; None when it is not Unicode."""


def decode_message(
    message: dict[str, Json], *, echo_reasoning: bool = False, escaped: bool = True
) -> DecodedMessage:
    """Decode the message object of a choice; never raises.

    `escaped` False: its text had no `\\u` in it, so all of it is Unicode.
    """
    text, text_defect = _text(message)
    calls, call_defect = _calls(message.get("tool_calls"))
    legacy = message.get("function_call") is not None
    defect = (
        text_defect
        or ("legacy_function_call" if legacy else None)
        or call_defect
        or _id_defect(calls)
        or _argument_defect(calls)
    )
    echo: dict[str, Json] | None = _echo(message, echo_reasoning)
    if escaped and not is_unicode(echo):
        echo = None
    return DecodedMessage(text, calls, defect, echo)


def is_unicode(value: Json) -> bool:
    """Tell whether every string of a JSON value can be written as UTF-8."""
    if isinstance(value, str):
        return not has_unpaired_surrogate(value)
    if isinstance(value, list):
        return all(map(is_unicode, value))
    if isinstance(value, dict):
        return all(map(is_unicode, value)) and all(map(is_unicode, value.values()))
    return True


def _text(message: dict[str, Json]) -> tuple[str | None, str | None]:
    content = message.get("content")
    if content is None:
        text: str | None = ""
        defect = None
    elif isinstance(content, str):
        text, defect = content, None
    else:
        text, defect = _joined(content)
    refusal = message.get("refusal")
    if text == "" and isinstance(refusal, str):
        text = refusal
    if text is not None and has_unpaired_surrogate(text):
        return None, defect or "invalid_unicode"
    return text, defect


def _joined(content: Json) -> tuple[str | None, str | None]:
    if not isinstance(content, list):
        return None, MALFORMED
    texts: list[str] = []
    refusals: list[str] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            return None, MALFORMED
        if kind in _REASONING_PARTS:
            continue
        if kind in _CALL_PARTS:
            return None, "call_in_content"
        wording = part.get("refusal" if kind == "refusal" else "text")
        if not isinstance(wording, str) or kind not in _TEXT_PARTS | {"refusal"}:
            return None, MALFORMED
        (refusals if kind == "refusal" else texts).append(wording)
    return "".join(texts) or "".join(refusals), None


def _calls(value: Json) -> tuple[tuple[ToolCall, ...], str | None]:
    if value is None:
        return (), None
    if not isinstance(value, list):
        return (), MALFORMED
    calls: list[ToolCall] = []
    defect: str | None = None
    readable = True
    for index, entry in enumerate(value):
        call, entry_defect = _call(index, entry)
        defect = defect or entry_defect
        if call is None:
            readable = False
        else:
            calls.append(call)
    return (tuple(calls) if readable else ()), defect


def _call(index: int, entry: Json) -> tuple[ToolCall | None, str | None]:
    if not isinstance(entry, dict):
        return None, MALFORMED
    kind = entry.get("type")
    unsupported = kind is not None and kind != "function"
    function = entry.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        return None, "call_type_unsupported" if unsupported else MALFORMED
    if has_unpaired_surrogate(name) or not is_unicode(kind):
        return None, "invalid_unicode"
    raw = function.get("arguments")
    parsed, status, parse_code = decode_arguments(raw)
    call_id = entry.get("id")
    call = ToolCall(
        index=index,
        id=call_id if isinstance(call_id, str) and is_unicode(call_id) else None,
        type=kind if isinstance(kind, str) else None,
        function_name=name,
        raw_arguments=raw if is_unicode(raw) else None,
        parsed_arguments=parsed,
        arguments_status=status,
        parse_code=parse_code,
    )
    return call, "call_type_unsupported" if unsupported else None


def decode_arguments(
    raw: Json,
) -> tuple[dict[str, Any] | None, ArgumentsStatus, str | None]:
    """Return the parsed object or None, the status, and the decoder's code."""
    if raw is None:
        return None, "missing", None
    if not isinstance(raw, str):
        return None, "wrong_type", None
    try:
        return decode_object(raw), "valid_object", None
    except StrictJsonError as error:
        if error.code == "top_level_not_object":
            return None, "json_not_object", error.code
        return None, "invalid_json", error.code


def _id_defect(calls: tuple[ToolCall, ...]) -> str | None:
    ids = [call.id for call in calls]
    if all(ids) and len(set(ids)) == len(ids):
        return None
    return UNUSABLE_IDS


def _argument_defect(calls: tuple[ToolCall, ...]) -> str | None:
    for call in calls:
        if call.arguments_status != "valid_object":
            return f"arguments.{call.arguments_status}"
    return None


def _echo(message: dict[str, Json], echo_reasoning: bool) -> dict[str, Json]:
    names = _ECHOED + _ECHOED_REASONING if echo_reasoning else _ECHOED
    echo: dict[str, Json] = {"role": "assistant"}
    for name in names:
        if name in message and not (name != "content" and not message[name]):
            echo[name] = message[name]
    return echo
