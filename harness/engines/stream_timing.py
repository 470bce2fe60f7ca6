"""Times of a chat server that streams: its first token, and its whole answer.

Two requests a row: a streamed one that is dropped after the first text, and a whole one
whose tokens the server counts. They are measurements and no evidence of an answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

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
_EVENT: Final = b"data:"
_MOST_BYTES: Final = 1 << 20
"""A stream that brings no text in so many bytes brings none."""
Headers = Sequence[tuple[bytes, bytes]]


Figure = TypeVar("Figure")


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
    async with _client() as client:
        for body in bodies:
            first_s = await _within(timeout_s, _first_text_s, client, url, body)
            whole = await _within(timeout_s, _whole_answer, client, url, body)
            if first_s is not None:
                times.first_token_s.append(first_s)
            if whole is not None:
                times.tokens_and_s.append(whole)
    return times


async def time_first_texts(
    base_url: str,
    bodies: Sequence[Mapping[str, Json]],
    timeout_s: float,
    headers: Headers,
) -> list[float]:
    """Time streamed requests, dropped after the first text, one after the other."""
    url = f"{base_url}/chat/completions"
    async with _client(headers) as client:
        found = [
            await _within(timeout_s, _first_text_s, client, url, body)
            for body in bodies
        ]
    return [seconds for seconds in found if seconds is not None]


def _client(headers: Headers = ()) -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=None, headers=list(headers))  # noqa: S113 (a scope)


async def _within(
    timeout_s: float,
    ask: Callable[[httpx.AsyncClient, str, Mapping[str, Json]], Awaitable[Figure]],
    client: httpx.AsyncClient,
    url: str,
    body: Mapping[str, Json],
) -> Figure | None:
    try:
        with anyio.fail_after(timeout_s):
            return await ask(client, url, body)
    except (httpx.HTTPError, TimeoutError):
        return None


async def _first_text_s(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Json]
) -> float | None:
    started = time.perf_counter()
    async with client.stream("POST", url, json={**body, "stream": True}) as response:
        if response.status_code != 200:
            return None
        received, pending = 0, b""
        async for piece in response.aiter_bytes():
            received += len(piece)
            *lines, pending = (pending + piece).split(b"\n")
            if any(_has_text(line) for line in lines):
                return time.perf_counter() - started
            if received > _MOST_BYTES:
                return None
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


def _has_text(line: bytes) -> bool:
    if not line.startswith(_EVENT):
        return False
    try:
        delta = json.loads(line.removeprefix(_EVENT))["choices"][0]["delta"]
        return bool(delta.get("content"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return False
