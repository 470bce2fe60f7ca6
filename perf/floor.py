"""The smallest driver of workload W that still keeps evidence: a floor to compare with.

For each request: a sorted body with its SHA-256, the reply parsed, arguments decoded
with duplicate keys refused, one hashed record. For each episode: a worker forked from
a lean process that was started first (`--workers fork`), its state asserted, one
hashed record. It has no typed records, gates, provenance, deadlines or containment.
aiohttp is the client (`pip install aiohttp`).

    python perf/floor.py --url http://127.0.0.1:8399/v1 -n 500 -c 64 --workers fork
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

from workload import SYSTEM, TOOLS, Bank, Call, facts, user_turns

DUMPS = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _unique(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


ARGUMENTS = json.JSONDecoder(object_pairs_hook=_unique)


def serve_worker(connection: socket.socket) -> None:
    """Answer one episode's calls, in a forked child."""
    stream = connection.makefile("rwb")
    bank = Bank(0)
    for line in stream:
        ask = json.loads(line)
        if ask["op"] == "reset":
            bank = Bank(ask["episode"])
            answer: object = True
        elif ask["op"] == "call":
            answer = bank.answer(Call(ask["name"], ask["arguments"]))
        else:
            answer = right_end(bank, ask["episode"])
        stream.write(json.dumps(answer).encode() + b"\n")
        stream.flush()


def right_end(bank: Bank, episode: int) -> bool:
    """Assert the exact final state."""
    source, target, cents = facts(episode)
    expected = Bank(episode)
    expected.balances[source] -= cents
    expected.balances[target] += cents
    return bank.balances == expected.balances and len(bank.movements) == 1


def fork_server(path: str) -> int:
    """Start the lean parent of all workers; return its process id."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    child = os.fork()
    if child:
        listener.close()
        return child
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            serve_worker(connection)
            os._exit(0)
        connection.close()


class InProcess:
    """Tools in the driver: not allowed for packs, the cheapest there is."""

    async def ask(self, ask: dict) -> object:
        """Answer one question."""
        if ask["op"] == "reset":
            self.bank = Bank(ask["episode"])
            return True
        if ask["op"] == "call":
            return self.bank.answer(Call(ask["name"], ask["arguments"]))
        return right_end(self.bank, ask["episode"])

    async def close(self) -> None:
        """Nothing to close."""


class Forked:
    """One worker forked for one episode."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reader = None

    async def ask(self, ask: dict) -> object:
        """Send one question and wait for its answer."""
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_unix_connection(self.path)
        self.writer.write(json.dumps(ask).encode() + b"\n")
        return json.loads(await asyncio.wait_for(self.reader.readline(), 10))

    async def close(self) -> None:
        """End the worker."""
        self.writer.close()


async def hold(episode: int, post, tools, log) -> bool:
    """Hold one conversation and record it."""
    turns = iter(user_turns(episode))
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": next(turns)},
    ]
    await tools.ask({"op": "reset", "episode": episode})
    hashes = []
    while True:
        body = DUMPS.encode(
            {
                "model": "w",
                "temperature": 0,
                "max_tokens": 512,
                "messages": messages,
                "tools": TOOLS,
            }
        ).encode()
        reply = await post(body)
        hashes.append(hashlib.sha256(body).hexdigest())
        record(log, {"request": body.decode(), "reply": reply.decode()})
        message = json.loads(reply)["choices"][0]["message"]
        messages.append(message)
        if calls := message.get("tool_calls"):
            for call in calls:
                arguments = ARGUMENTS.decode(call["function"]["arguments"])
                name = call["function"]["name"]
                ask = {"op": "call", "name": name, "arguments": arguments}
                content = DUMPS.encode(await tools.ask(ask))
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": content}
                )
        elif (turn := next(turns, None)) is not None:
            messages.append({"role": "user", "content": turn})
        else:
            break
    right = await tools.ask({"op": "check", "episode": episode})
    await tools.close()
    record(log, {"episode": episode, "right": right, "requests": hashes})
    return bool(right)


def record(log, payload: dict) -> None:
    """Append one hashed line."""
    line = DUMPS.encode(payload).encode()
    digest = hashlib.sha256(line).hexdigest()
    log.write(line[:-1] + b',"sha256":"' + digest.encode() + b'"}\n')


async def run(options: argparse.Namespace, path: str, log) -> int:
    """Hold all episodes, a bounded number at once; return how many were right."""
    import aiohttp

    numbers = iter(range(options.episodes))
    right = 0
    connector = aiohttp.TCPConnector(limit=options.parallel)
    url = options.url + "/chat/completions"
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def post(body: bytes) -> bytes:
            async with session.post(url, data=body) as response:
                return await response.read()

        async def work() -> None:
            nonlocal right
            for number in numbers:
                tools = Forked(path) if options.workers == "fork" else InProcess()
                # Read the sum after the wait, not before it.
                one = await hold(number, post, tools, log)
                right += one

        await asyncio.gather(*(work() for _ in range(options.parallel)))
    return right


def main() -> int:
    """Run the floor once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("-n", "--episodes", type=int, default=500)
    parser.add_argument("-c", "--parallel", type=int, default=64)
    parser.add_argument("--workers", choices=("none", "fork"), default="fork")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "workers.sock")
        server = fork_server(path) if options.workers == "fork" else 0
        try:
            with (Path(folder) / "evidence.jsonl").open("wb") as log:
                right = asyncio.run(run(options, path, log))
        finally:
            if server:
                os.kill(server, 15)
                os.waitpid(server, 0)
    print(json.dumps({"episodes": options.episodes, "right": right}))
    return 0 if right == options.episodes else 1


if __name__ == "__main__":
    sys.exit(main())
