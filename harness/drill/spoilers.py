"""From a gold completion to a delivery that says something else.

A `Spoil` gets the payload that a gold candidate would have sent. Bodies are written
with the standard encoder, which escapes what is no Unicode: some faults need it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from harness.candidates.loopback_http import Delivery
from harness.canonical import Json, canonical_bytes
from harness.drill import deliveries

Payload = dict[str, Json]
Spoil = Callable[[Payload], Delivery]


def raw(make: Callable[[bytes], Delivery]) -> Spoil:
    """Deliver the gold body in another way."""
    return lambda gold: make(canonical_bytes(gold))


def status(code: int, error: Json = None, **headers: str) -> Spoil:
    """Answer with a status, an error object and headers (underscores for hyphens)."""
    body = b"" if error is None else json.dumps({"error": error}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: deliveries.whole(body, code, named)


def text(body: bytes, content_type: str = "application/json") -> Spoil:
    """Answer 200 with a body that has nothing to do with gold."""
    return lambda _: deliveries.whole(body, 200, {"content-type": content_type})


def envelope(**fields: Json) -> Spoil:
    """Change fields of the envelope."""
    return lambda gold: deliveries.whole(json.dumps({**gold, **fields}).encode())


def choice(**fields: Json) -> Spoil:
    """Change fields of the only choice."""

    def spoil(gold: Payload) -> Delivery:
        return envelope(choices=[{**gold["choices"][0], **fields}])(gold)

    return spoil


def message(**fields: Json) -> Spoil:
    """Change fields of the message."""

    def spoil(gold: Payload) -> Delivery:
        return choice(message={**gold["choices"][0]["message"], **fields})(gold)

    return spoil


def first_call(change: Callable[[Payload], Payload]) -> Spoil:
    """Change the first call of a message that has one."""

    def spoil(gold: Payload) -> Delivery:
        first, *rest = gold["choices"][0]["message"]["tool_calls"]
        return message(tool_calls=[change(first), *rest])(gold)

    return spoil


def arguments(change: Callable[[str], Json]) -> Spoil:
    """Change the argument text of the first call."""

    def changed(call: Payload) -> Payload:
        function = call["function"]
        return {
            **call,
            "function": {**function, "arguments": change(function["arguments"])},
        }

    return first_call(changed)


def repeated_choice(gold: Payload) -> Delivery:
    """Offer two choices for a request that asked for one."""
    first = gold["choices"][0]
    return envelope(choices=[first, {**first, "index": 1}])(gold)
