"""Times of a chat server that streams: its first token, and its whole answer.

Two requests a row: a streamed one that is dropped after the first text, and a whole one
whose tokens the server counts. They are measurements and no evidence of an answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
import httpx

from harness.canonical import Json

START_BOUNDARY: Final = (
    "from sending a streamed request on loopback to the first text of its answer; "
    "tokenising, queueing and prefill included, starting the server excluded"
)
RATE_BOUNDARY: Final = (
    "completion tokens that the server counts by the wall time of a request of its own "
    "for the whole answer, not streamed, prefill included"
)
_EVENT: Final = "data:"


@dataclass(slots=True)
class StreamTimes:
    """Times of those rows that were answered, in their order."""

    first_token_s: list[float] = field(default_factory=list)
    tokens_and_s: list[tuple[int, float]] = field(default_factory=list)


async def time_answers(
    base_url: str, bodies: Sequence[Mapping[str, Json]], timeout_s: float
) -> StreamTimes:
    """Time the requests one after the other; `timeout_s` bounds each."""
    times = StreamTimes()
    url = f"{base_url}/chat/completions"
    async with httpx.AsyncClient(trust_env=False, timeout=None) as client:  # noqa: S113 (a scope)
        for body in bodies:
            try:
                with anyio.fail_after(timeout_s):
                    first_s = await _first_text_s(client, url, body)
                with anyio.fail_after(timeout_s):
                    whole = await _whole_answer(client, url, body)
            except (httpx.HTTPError, TimeoutError):
                continue
            if first_s is not None:
                times.first_token_s.append(first_s)
            if whole is not None:
                times.tokens_and_s.append(whole)
    return times


async def _first_text_s(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Json]
) -> float | None:
    started = time.perf_counter()
    async with client.stream("POST", url, json={**body, "stream": True}) as response:
        if response.status_code != 200:
            return None
        async for line in response.aiter_lines():
            if line.startswith(_EVENT) and _has_text(line.removeprefix(_EVENT)):
                return time.perf_counter() - started
    return None


async def _whole_answer(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Json]
) -> tuple[int, float] | None:
    started = time.perf_counter()
    response = await client.post(url, json=body)
    seconds = time.perf_counter() - started
    try:
        tokens = response.json()["usage"]["completion_tokens"]
    except (ValueError, KeyError, TypeError):
        return None
    return (tokens, seconds) if type(tokens) is int and tokens > 0 else None


def _has_text(event: str) -> bool:
    try:
        delta = json.loads(event)["choices"][0]["delta"]
        return bool(delta.get("content"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return False
