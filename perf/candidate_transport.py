"""Client CPU per candidate request on loopback, by way of sending it.

    python perf/candidate_transport.py [--requests N] [--connections 1,64]

Prints microseconds of this process per request; the server runs in another one. The
first row, bare asyncio streams without any HTTP library, is the floor.
"""

import argparse
import asyncio
import json
import multiprocessing
import time
from datetime import UTC, datetime

import anyio
import httpx

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.credential import Credential
from harness.candidates.delivery import Mailbox
from harness.candidates.request import Endpoint, prepare_request
from harness.candidates.transport import HttpTransport, Origin
from harness.candidates.wire import classify

REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767607200,
        "model": "mock",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {
                                "name": "transfer",
                                "arguments": '{"from": "A-1", "to": "A-2", "n": 3}',
                            },
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 420, "completion_tokens": 32, "total_tokens": 452},
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: mock\r\n"
RESPONSE = HEAD + b"Content-Length: %d\r\n\r\n" % len(REPLY) + REPLY
MESSAGES = [{"role": "user", "content": "x" * 2200}]


class _Answering(asyncio.Protocol):
    def connection_made(self, transport):
        self._transport = transport
        self._seen = b""

    def data_received(self, data):
        self._seen += data
        while (end := self._seen.find(b"\r\n\r\n")) >= 0:
            head = self._seen[:end].lower()
            at = head.find(b"content-length:") + 15
            whole = end + 4 + int(head[at:].split(b"\r\n")[0])
            if len(self._seen) < whole:
                return
            self._seen = self._seen[whole:]
            self._transport.write(RESPONSE)


def serve(ports):
    """Answer every request with one fixed completion, and tell the port."""

    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Answering, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(main())


def endpoint(port):
    """Return the endpoint of the server under `port`."""
    return Endpoint(
        alias="mock",
        canonical_id="hub:mock@provider_managed",
        provider="local",
        provider_api_version="v1",
        base_url=f"http://127.0.0.1:{port}/v1",
        model="mock",
        api_key_env=None,
        inference={"temperature": 0.0, "max_tokens": 256, "tool_choice": "auto"},
        echo_reasoning=False,
    )


def ask(port, turn=0):
    """Return one request of a typical size."""
    return prepare_request(
        endpoint(port),
        task_id="t",
        trial=0,
        turn_index=turn,
        messages=MESSAGES,
        tools=[],
    )


async def spread(count, connections, one):
    """Run `one` `count` times, `connections` of them at a time."""
    numbers = iter(range(count))

    async def work():
        for number in numbers:
            await one(number)

    async with anyio.create_task_group() as tasks:
        for _ in range(connections):
            tasks.start_soon(work)


def _head(body):
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    )


async def bare_streams(port, count, connections):
    """Measure the floor: asyncio streams and nothing else."""
    body = ask(port).body
    numbers = iter(range(count))

    async def work():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in numbers:
            writer.write(_head(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            at = head.lower().find(b"content-length:") + 15
            await reader.readexactly(int(head[at : head.find(b"\r", at)]))
        writer.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(connections):
            tasks.create_task(work())


async def own_bytes(port, count, connections):
    """Measure our transport without any httpx object."""
    body = ask(port).body
    transport = HttpTransport()
    origin = Origin("http", "127.0.0.1", port)

    async def one(_):
        await transport.send(origin, _head(body) + body)

    await spread(count, connections, one)
    await transport.aclose()


async def own_called_directly(port, count, connections):
    """Measure what candidates use: httpx objects, no httpx client."""
    body = ask(port).body
    mailbox = Mailbox(f"http://127.0.0.1:{port}/v1", Credential(None), None)

    async def one(_):
        await mailbox.post(body)

    await spread(count, connections, one)
    await mailbox.aclose()


async def own_under_httpx_client(port, count, connections):
    """Measure an httpx client over our transport."""
    await _httpx_client(port, count, connections, HttpTransport())


async def httpx_default(port, count, connections):
    """Measure an httpx client over httpx's own pool."""
    limits = httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections
    )
    transport = httpx.AsyncHTTPTransport(limits=limits, trust_env=False)
    await _httpx_client(port, count, connections, transport)


async def _httpx_client(port, count, connections, transport):
    body = ask(port).body
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with httpx.AsyncClient(
        transport=transport, timeout=None, trust_env=False
    ) as client:

        async def one(_):
            await client.post(url, content=body)

        await spread(count, connections, one)


class _Nowhere:
    def request(self, request):
        pass

    def attempt(self, request_hash, attempt):
        pass

    def outcome(self, outcome):
        pass

    def attempts_made(self, request_hash):
        return 0


async def whole_exchange(port, count, connections):
    """Measure a request from its encoding to its records."""
    async with ChatHttpCandidate(
        endpoint(port),
        None,
        candidate_timeout_s=60,
        max_retries=0,
        recorder=_Nowhere(),
    ) as candidate:

        async def one(number):
            deadline = anyio.current_time() + 60
            await candidate.exchange(ask(port, number), deadline=deadline)

        await spread(count, connections, one)


async def classification_alone(port, count, connections):
    """Measure the decoding of one response, without any socket."""
    now = datetime.now(UTC)
    for _ in range(count):
        classify(200, {}, REPLY, now=now)


WAYS = (
    bare_streams,
    own_bytes,
    own_called_directly,
    own_under_httpx_client,
    httpx_default,
    classification_alone,
    whole_exchange,
)


def cost_us(way, port, count, connections):
    """Return the CPU of one request in microseconds, after a warm-up."""
    asyncio.run(way(port, connections * 2, connections))
    before = time.process_time()
    asyncio.run(way(port, count, connections))
    return (time.process_time() - before) / count * 1e6


def main():
    """Print one row a way and one column a number of connections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--connections", default="1,64")
    options = parser.parse_args()
    widths = [int(text) for text in options.connections.split(",")]
    ports = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ports,), daemon=True)
    server.start()
    port = ports.get()
    for way in WAYS:
        costs = [cost_us(way, port, options.requests, width) for width in widths]
        print(f"{way.__name__:24}", *(f"{cost:8.0f}" for cost in costs))
    server.terminate()


if __name__ == "__main__":
    main()
