"""What a vLLM server says of itself and of a prompt, beside its chat interface.

Another server may not know these addresses, so every answer can be absent. The words of
an error are never read: a prompt is too long where the server's own count says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

import anyio
import httpx

from harness.candidates.transport import HttpTransport
from harness.canonical import Json
from harness.engines.protocol import UNKNOWN, PromptRow

QUESTION_DEADLINE_S: Final = 10.0


class PromptRoom(NamedTuple):
    """How long a prompt is and how much prompt and answer may have, in tokens."""

    prompt_tokens: int
    context_tokens: int


async def server_version(address: str) -> str:
    """Return what `/version` says; UNKNOWN where it says nothing."""
    version = (await _ask("GET", f"{address}/version")).get("version")
    return version if isinstance(version, str) else UNKNOWN


async def prompt_room(address: str, model: str, row: PromptRow) -> PromptRoom | None:
    """Return the server's own count of a row's prompt; None where it gives none."""
    found = await _ask(
        "POST",
        f"{address}/tokenize",
        {"model": model, "messages": [dict(message) for message in row.messages]},
    )
    count, limit = found.get("count"), found.get("max_model_len")
    if type(count) is int and type(limit) is int:
        return PromptRoom(count, limit)
    return None


async def _ask(method: str, url: str, payload: Json = None) -> Mapping[str, Json]:
    """Return the object that a 200 holds; anything else reads as an empty one."""
    body = b"" if payload is None else json.dumps(payload).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    request = httpx.Request(method, url, headers=headers, content=body)
    with anyio.move_on_after(QUESTION_DEADLINE_S):
        async with HttpTransport() as transport:
            try:
                reply = await transport.handle_async_request(request)
                found = json.loads(await reply.aread())
            except (httpx.TransportError, ValueError):
                return {}
            if reply.status_code == 200 and isinstance(found, dict):
                return found
    return {}
