"""The ten requests of `fairtrial doctor`.

Each asks for something that a benchmark relies on and that endpoints are known to
get wrong. What is asked is easy for a model, so that a bad answer points at what
stands between the model and here: the chat template, the tool parser, the gateway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from harness.canonical import Json, canonical_json

LONG_ID: Final = "call_" + "x7Kq" * 30
"""125 characters; gateways are known that cut or refuse ids over 40 or 64."""
UNUSUAL_NAME: Final = "Zürich–東京 🙂"
READING: Final = "4711"
"""What a tool result says and nothing else in the request does."""
ANSWER_TOKENS: Final = 1024
CUT_TOKENS: Final = 16

Name = Literal[
    "tool call",
    "parallel calls",
    "no-argument tool",
    "nested arguments",
    "unicode",
    "refusal to call",
    "long ids",
    "tool results",
    "tool choice",
    "truncation",
]


@dataclass(frozen=True, slots=True)
class Probe:
    """One request and what it is for."""

    name: Name
    purpose: str
    messages: tuple[dict[str, Json], ...]
    tools: tuple[dict[str, Json], ...]
    tool_choice: Literal["auto", "required"] = "auto"
    max_tokens: int = ANSWER_TOKENS
    expected: tuple[tuple[str, dict[str, Json]], ...] = ()
    """The calls that a good answer makes: name and arguments."""


def _tool(name: str, about: str, **properties: Json) -> dict[str, Json]:
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if properties:
        parameters["required"] = list(properties)
    function = {"name": name, "description": about, "parameters": parameters}
    return {"type": "function", "function": function}


_TEXT: Json = {"type": "string"}
WEATHER: Final = _tool("get_weather", "Current weather of one city.", city=_TEXT)
CLOCK: Final = _tool("get_server_time", "Current time of the server.")
SENSOR: Final = _tool("read_sensor", "Current reading of one sensor.", sensor=_TEXT)
ORDER: Final = _tool(
    "place_order",
    "Place one order.",
    customer={
        "type": "object",
        "properties": {"name": _TEXT, "phones": {"type": "array", "items": _TEXT}},
        "required": ["name", "phones"],
        "additionalProperties": False,
    },
    lines={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"item": _TEXT, "quantity": {"type": "integer"}},
            "required": ["item", "quantity"],
            "additionalProperties": False,
        },
    },
)
_ORDERED: dict[str, Json] = {
    "customer": {"name": "Ada", "phones": ["111", "222"]},
    "lines": [{"item": "pen", "quantity": 2}, {"item": "ink", "quantity": 1}],
}


def _said(text: str) -> dict[str, Json]:
    return {"role": "user", "content": text}


def _asked_and_answered(call_id: str) -> tuple[dict[str, Json], ...]:
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": "read_sensor", "arguments": '{"sensor":"boiler"}'},
    }
    result = canonical_json({"sensor": "boiler", "reading": READING})
    return (
        _said(
            "What is the reading of the sensor named boiler? Answer in one sentence."
        ),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    )


def _weather(*cities: str) -> tuple[tuple[str, dict[str, Json]], ...]:
    return tuple(("get_weather", {"city": city}) for city in cities)


PROBES: Final = (
    Probe(
        "tool call",
        "a structured call",
        (_said("Use the tool: what is the weather in the city Paris?"),),
        (WEATHER,),
        expected=_weather("Paris"),
    ),
    Probe(
        "parallel calls",
        "two calls in one message",
        (
            _said(
                "Use the tool twice, in one go, with two parallel calls: what is the "
                "weather in the city Paris and in the city Rome?"
            ),
        ),
        (WEATHER,),
        expected=_weather("Paris", "Rome"),
    ),
    Probe(
        "no-argument tool",
        "a call without arguments",
        (_said("Use the tool: what time is it on the server?"),),
        (CLOCK,),
        expected=(("get_server_time", {}),),
    ),
    Probe(
        "nested arguments",
        "objects and lists inside arguments",
        (
            _said(
                "Use the tool to place exactly this order. Customer: name Ada, phones "
                "111 and 222, in this order. Lines: 2 of item pen, then 1 of item ink."
            ),
        ),
        (ORDER,),
        expected=(("place_order", _ORDERED),),
    ),
    Probe(
        "unicode",
        "text beyond ASCII, unchanged",
        (
            _said(
                "Use the tool: what is the weather in the city that is called exactly "
                f"{UNUSUAL_NAME} (copy the name as it stands)?"
            ),
        ),
        (WEATHER,),
        expected=_weather(UNUSUAL_NAME),
    ),
    Probe(
        "refusal to call",
        "an answer in words where no tool fits",
        (_said("Do not use any tool. Say hello in one short sentence."),),
        (WEATHER,),
    ),
    Probe(
        "long ids",
        "long call ids taken back",
        _asked_and_answered(LONG_ID),
        (SENSOR,),
    ),
    Probe(
        "tool results",
        "results that reach the model",
        _asked_and_answered("call_1"),
        (SENSOR,),
    ),
    Probe(
        "tool choice",
        "`tool_choice: required`",
        (_said("Hello! I wonder about the weather in Paris."),),
        (WEATHER,),
        tool_choice="required",
    ),
    Probe(
        "truncation",
        "a cut answer that says so",
        (_said("Do not use any tool. Count from 1 to 300, with commas."),),
        (WEATHER,),
        max_tokens=CUT_TOKENS,
    ),
)
"""In the order in which they are sent."""
