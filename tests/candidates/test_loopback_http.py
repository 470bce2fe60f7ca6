"""The small HTTP server, byte by byte over real sockets."""

import json

import anyio
import pytest

from harness.candidates import loopback_http
from harness.candidates.control import Response
from harness.candidates.loopback_http import LOOPBACK, listen, port_of, serve

DEADLINE_S = 10


def echo(request):
    return Response(
        200,
        {
            "method": request.method,
            "path": request.path,
            "body": request.body.decode("latin-1"),
        },
    )


def exchange(*pieces, handler=echo):
    """Send pieces on one connection, then read until the server closes it."""

    async def run():
        received = b""
        with anyio.fail_after(DEADLINE_S):
            listener = await listen(0)
            async with listener, anyio.create_task_group() as group:
                group.start_soon(serve, listener, handler)
                stream = await anyio.connect_tcp(LOOPBACK, port_of(listener))
                async with stream:
                    for piece in pieces:
                        await stream.send(piece)
                    if pieces:
                        await stream.send_eof()
                    try:
                        while True:
                            received += await stream.receive()
                    except (anyio.EndOfStream, anyio.BrokenResourceError):
                        pass
                group.cancel_scope.cancel()
        return received

    return anyio.run(run)


def responses(received):
    """Split a byte stream of responses into (status, payload)."""
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        found.append((status, json.loads(rest[:length])))
        received = rest[length:]
    return found


def post(body, *headers):
    lines = [b"POST /p?q=1 HTTP/1.1", b"host: x", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def statuses(*pieces):
    return [status for status, _ in responses(exchange(*pieces))]


def test_body_by_length_reaches_the_handler():
    assert responses(exchange(post(b"abc", b"Content-Length: 3"))) == [
        (200, {"method": "POST", "path": "/p", "body": "abc"})
    ]


def test_chunked_body_is_put_together():
    chunks = b"2\r\nab\r\n1;note=x\r\nc\r\n0\r\ntrailer: y\r\n\r\n"
    [(_, payload)] = responses(
        exchange(post(chunks, b"Transfer-Encoding: chunked")),
    )

    assert payload["body"] == "abc"


def test_request_in_pieces_is_put_together():
    whole = post(b"abc", b"content-length: 3")
    pieces = [whole[i : i + 7] for i in range(0, len(whole), 7)]

    assert statuses(*pieces) == [200]


def test_connection_is_kept_for_the_next_request():
    request = post(b"abc", b"content-length: 3")

    assert statuses(request, request, request) == [200, 200, 200]


def test_connection_closes_when_the_client_asks():
    request = post(b"", b"connection: close")

    assert statuses(request + post(b"")) == [200]


def test_old_protocol_closes_by_default():
    assert statuses(b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n") == [200]


def test_expected_continue_is_sent_before_the_answer():
    received = exchange(post(b"abc", b"content-length: 3", b"expect: 100-continue"))

    assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_response_is_the_same_bytes_again():
    request = post(b"abc", b"content-length: 3", b"connection: close")

    assert exchange(request) == exchange(request)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (post(b"", b"content-length: x"), 400),
        (post(b"", b"content-length: -1"), 400),
        (post(b"ab", b"content-length: 2", b"content-length: 2"), 400),
        (post(b"", b"content-length: 2", b"transfer-encoding: chunked"), 400),
        (post(b"", b"transfer-encoding: gzip"), 400),
        (post(b"zz\r\n", b"transfer-encoding: chunked"), 400),
        (post(b"1\r\nab\r\n0\r\n\r\n", b"transfer-encoding: chunked"), 400),
        (post(b"", b"content-length: 99999999"), 413),
        (post(b"fffffff\r\n", b"transfer-encoding: chunked"), 413),
        (post(b"", b"content-length: 1" + b"0" * 30), 400),
    ],
)
def test_broken_request_gets_its_status_and_the_connection_closes(
    request_bytes, status
):
    received = exchange(request_bytes)

    assert [s for s, _ in responses(received)] == [status]
    assert b"connection: close" in received


def test_endless_head_is_refused():
    assert statuses(b"GET / HTTP/1.1\r\nx: " + b"y" * 70000) == [431]


def test_endless_chunk_line_is_refused():
    assert statuses(post(b"1" * 70000, b"transfer-encoding: chunked")) == [400]


def test_cut_body_gets_no_answer():
    assert exchange(post(b"ab", b"content-length: 3")) == b""


def test_body_that_does_not_come_in_time_is_refused(monkeypatch):
    monkeypatch.setattr(loopback_http, "READ_TIMEOUT_S", 0.02)

    async def run():
        with anyio.fail_after(DEADLINE_S):
            listener = await listen(0)
            async with listener, anyio.create_task_group() as group:
                group.start_soon(serve, listener, echo)
                stream = await anyio.connect_tcp(LOOPBACK, port_of(listener))
                async with stream:
                    await stream.send(post(b"a", b"content-length: 3"))
                    received = await stream.receive()
                group.cancel_scope.cancel()
        return received

    assert responses(anyio.run(run))[0][0] == 408


def test_idle_connection_is_closed(monkeypatch):
    monkeypatch.setattr(loopback_http, "IDLE_TIMEOUT_S", 0.02)

    assert exchange() == b""
