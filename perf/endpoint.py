"""A fast chat-completions endpoint for workload W, on loopback only.

It answers from the request alone (the facts it names, answers so far) and checks
nothing, so that a measured program waits for its own work. One process, a bare
asyncio protocol; orjson and uvloop are used where they are installed. `--latency`
delays every completion without blocking. `GET /stats` tells what it has seen and its
own CPU seconds. Prints one JSON line with its URL when it listens.

    python perf/endpoint.py --port 8399 --latency 0.2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass

from workload import Reply, facts_in, reply

try:
    from orjson import dumps, loads
except ImportError:
    loads = json.loads

    def dumps(value: object) -> bytes:
        """Encode as orjson would."""
        return json.dumps(value, separators=(",", ":")).encode()


try:
    from uvloop import run
except ImportError:
    run = asyncio.run

LOOPBACK = "127.0.0.1"
BACKLOG = 1024
FOREIGN = Reply("Forty-two.", ())
"""Answers conversations that are not of the workload."""
USAGE = {"prompt_tokens": 430, "completion_tokens": 30, "total_tokens": 460}


@dataclass(slots=True)
class Stats:
    """What the endpoint has seen."""

    requests: int = 0
    other: int = 0
    connections: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


def completion(body: dict[str, object]) -> bytes:
    """Return the encoded completion for one request."""
    messages = body["messages"]
    first = next((m["content"] for m in messages if m["role"] == "user"), "")
    answered = sum(1 for message in messages if message["role"] == "assistant")
    about = facts_in(first) if isinstance(first, str) else None
    text, calls = FOREIGN if about is None else reply(about, answered)
    label = "foreign" if about is None else f"{about.source}-{about.cents}"
    message: dict[str, object] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{label}_{answered}_{position}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments),
                },
            }
            for position, call in enumerate(calls)
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if calls else "stop",
        "logprobs": None,
    }
    return dumps(
        {
            "id": f"chatcmpl-{label}-{answered}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": body.get("model", "workload"),
            "choices": [choice],
            "usage": USAGE,
        }
    )


class Connection(asyncio.Protocol):
    """One client connection; requests are answered in order of arrival."""

    def __init__(self, stats: Stats, latency_s: float) -> None:
        self.stats = stats
        self.latency_s = latency_s
        self.buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the connection."""
        self.transport = transport
        self.stats.connections += 1

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self.buffer = self.buffer + data if self.buffer else data
        while (split := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:split]
            taken = _body_at(head.lower(), self.buffer, split + 4)
            if taken is None:
                return
            body, end = taken
            self.buffer = self.buffer[end:]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        """Route one request."""
        stats = self.stats
        if head.startswith(b"POST") and b"/chat/completions" in head[:200]:
            stats.requests += 1
            stats.bytes_in += len(body)
            try:
                payload = completion(loads(body))
            except (ValueError, KeyError, TypeError):
                self.send(dumps({"error": {"message": "unreadable request"}}), b"400")
                return
            if not self.latency_s:
                self.send(payload)
                return
            stats.in_flight += 1
            stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
            loop = asyncio.get_running_loop()
            loop.call_later(self.latency_s, self.send_late, payload)
            return
        stats.other += 1
        if head.startswith(b"GET /stats"):
            times = os.times()
            self.send(dumps({**asdict(stats), "cpu_s": times.user + times.system}))
        elif head.startswith(b"GET /v1/models"):
            self.send(dumps({"object": "list", "data": [{"id": "workload"}]}))
        else:
            self.send(dumps({"error": {"message": "no such path"}}), b"404")

    def send_late(self, payload: bytes) -> None:
        """Send a completion whose latency is over."""
        self.stats.in_flight -= 1
        self.send(payload)

    def send(self, payload: bytes, status: bytes = b"200") -> None:
        """Send one response."""
        self.stats.bytes_out += len(payload)
        if self.transport is None or self.transport.is_closing():
            return
        self.transport.write(
            b"HTTP/1.1 %b x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%b" % (status, len(payload), payload)
        )


def _body_at(head: bytes, data: bytes, start: int) -> tuple[bytes, int] | None:
    """Return the body and where it ends; None while it is not whole."""
    if b"transfer-encoding: chunked" in head:
        return _chunks_at(data, start)
    length = 0
    found = head.find(b"\r\ncontent-length:")
    if found >= 0:
        length = int(head[found + 17 :].split(b"\r\n", 1)[0])
    end = start + length
    return (data[start:end], end) if len(data) >= end else None


def _chunks_at(data: bytes, start: int) -> tuple[bytes, int] | None:
    body = b""
    while (line_end := data.find(b"\r\n", start)) >= 0:
        size = int(data[start:line_end], 16)
        end = line_end + 2 + size + 2
        if len(data) < end:
            return None
        if size == 0:
            return body, end
        body += data[line_end + 2 : line_end + 2 + size]
        start = end
    return None


async def serve(port: int, latency_s: float, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    stats = Stats()
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = await loop.create_server(
        lambda: Connection(stats, latency_s), LOOPBACK, port, backlog=BACKLOG
    )
    bound = server.sockets[0].getsockname()[1]
    announce(json.dumps({"url": f"http://{LOOPBACK}:{bound}/v1", "pid": os.getpid()}))
    await stopped.wait()
    server.close()


def main() -> int:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description="fast endpoint for workload W")
    parser.add_argument("--port", type=int, default=0, help="default: a free port")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="S", help="seconds a completion"
    )
    arguments = parser.parse_args()
    run(
        serve(
            arguments.port,
            arguments.latency,
            lambda line: print(line, flush=True),
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
