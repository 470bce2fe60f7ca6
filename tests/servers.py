"""An HTTP server on a raw loopback socket that answers as a test says, faults included.

Threads and blocking sockets, so it serves any event loop, command line or process
under test. A test gives it one function from the received request to a `Reply`, or
a list of replies that are used in order (the last one again and again).
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Headers = dict[str, str]


@dataclass(frozen=True)
class Reply:
    """One response and how it is delivered."""

    status: int | None = 200
    headers: Headers = field(default_factory=dict)
    body: bytes = b""
    fault: str | None = None
    """`chunk_truncated content_length_short reset_mid_body` (each sends
    `send_bytes` of the body), `close_before_response`, `total_deadline_drip`
    (`bytes_per_s`), `oversize_body` (`body_bytes`), `hang`."""
    send_bytes: int = 0
    bytes_per_s: float = 0.0
    body_bytes: int = 0
    close: bool = False
    """Close the connection after this reply without saying so."""
    raw: bytes | None = None
    """Send exactly these bytes and nothing else."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: Headers
    body: bytes
    connection: int
    """Number of the connection that carried it, from 0."""

    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received], Reply]


def json_reply(payload: Any, status: int = 200, **headers: str) -> Reply:
    """A JSON response; header names are given with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps(payload).encode()
    return Reply(status, {"Content-Type": "application/json", **named}, body)


def tool_call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    """One entry of `tool_calls`; arguments that are no text are encoded."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": text},
    }


def completion(
    text: str | None = None,
    calls: Iterable[dict[str, Any]] = (),
    *,
    finish_reason: str | None = None,
    **message: Any,
) -> Reply:
    """A well-formed chat completion with one choice."""
    calls = list(calls)
    content = {"role": "assistant", "content": text, **message}
    if calls:
        content["tool_calls"] = calls
    reason = finish_reason or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": content, "finish_reason": reason}
    return json_reply(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1767607200,
            "model": "scripted",
            "choices": [choice],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    )


class ScriptedServer:
    """A context manager; `url` is the base URL, `requests` what has arrived."""

    def __init__(
        self, answer: Answer | list[Reply], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._answer = answer if callable(answer) else _in_order(answer)
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.requests: list[Received] = []
        self.connections = 0
        self.errors: list[BaseException] = []
        """What a test's own answer function raised."""

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ScriptedServer:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        # Wakes the blocking accept, which closing the descriptor would not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for connection in sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(10)
            assert not thread.is_alive(), "a server thread did not end"
        if self.errors:
            raise self.errors[0]

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                number = self.connections
                self.connections += 1
                self._sockets.add(connection)
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        raw = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            with reader:
                while received := _read_request(reader, number):
                    with self._lock:
                        self.requests.append(received)
                    reply = self._answer(received)
                    if not self._deliver(connection, reply):
                        return
        except OSError:
            return
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            with self._lock:
                self._sockets.discard(raw)
            connection.close()

    def _deliver(self, connection: socket.socket, reply: Reply) -> bool:
        """Send a reply; return whether the connection stays open."""
        if reply.fault == "close_before_response":
            return False
        if reply.fault == "hang":
            self._closing.wait()
            return False
        if reply.raw is not None:
            connection.sendall(reply.raw)
            if reply.fault == "reset_mid_body":
                self._reset(connection)
            return not (reply.close or reply.fault)
        head, body = _framed(reply)
        if reply.fault is None:
            connection.sendall(head + body)
            return not reply.close
        if reply.fault == "total_deadline_drip":
            connection.sendall(head)
            for position in range(len(body)):
                connection.sendall(body[position : position + 1])
                if self._closing.wait(1 / reply.bytes_per_s):
                    return False
            return False
        if reply.fault == "oversize_body":
            self._send_much(connection, head, reply.body_bytes)
            return False
        connection.sendall(head + body[: reply.send_bytes])
        if reply.fault == "reset_mid_body":
            self._reset(connection)
        return False

    def _reset(self, connection: socket.socket) -> None:
        # Lets the bytes arrive before the reset overtakes them.
        self._closing.wait(0.05)
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    def _send_much(self, connection: socket.socket, head: bytes, count: int) -> None:
        connection.sendall(head)
        piece = b" " * 65536
        while count > 0:
            connection.sendall(piece[:count])
            count -= len(piece)


def _in_order(replies: list[Reply]) -> Answer:
    left = list(replies)
    lock = threading.Lock()

    def answer(_: Received) -> Reply:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return answer


def _read_request(reader: Any, number: int) -> Received | None:
    first = reader.readline()
    if not first:
        return None
    method, path, _ = first.decode("latin-1").split(" ", 2)
    headers: Headers = {}
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    body = reader.read(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body, number)


def _framed(reply: Reply) -> tuple[bytes, bytes]:
    """Return head and body as they go over the wire when nothing is cut."""
    names = {name.lower() for name in reply.headers}
    lines = [f"HTTP/1.1 {reply.status} Status"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    body = reply.body
    if "transfer-encoding" in names:
        body = _chunked(body)
    elif "content-length" not in names:
        size = reply.body_bytes if reply.fault == "oversize_body" else len(body)
        lines.append(f"Content-Length: {size}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), body


def _chunked(body: bytes) -> bytes:
    half = len(body) // 2
    chunks = [piece for piece in (body[:half], body[half:]) if piece]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in chunks)
    return framed + b"0\r\n\r\n"
