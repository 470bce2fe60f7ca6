"""The transport over real sockets: bodies exact, connections kept, faults named."""

import socket
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx
import pytest

from harness.candidates.transport import CutResponse, HttpTransport, OversizeBody
from tests.servers import Reply, ScriptedServer

pytestmark = pytest.mark.anyio
TLS = Path(__file__).parent.parent / "fixtures" / "tls"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@asynccontextmanager
async def opened(**options):
    transport = HttpTransport(**options)
    try:
        yield transport
    finally:
        await transport.aclose()


async def post(transport, url, body=b"{}", **headers):
    request = httpx.Request("POST", url, content=body, headers=headers)
    with anyio.fail_after(20):
        response = await transport.handle_async_request(request)
        return response.status_code, await response.aread()


async def closed_by_peer(transport):
    """Wait until the one idle connection has heard from its server."""
    ((connection,),) = transport._idle.values()
    with anyio.fail_after(20):
        while connection.is_quiet():
            await anyio.lowlevel.checkpoint()


def raw(text, **options):
    return Reply(raw=text.replace(b"\n", b"\r\n"), **options)


WHOLE = {
    "content-length": raw(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    "repeated content-length": raw(b"HTTP/1.1 200 OK\nContent-Length: 5, 5\n\nhello"),
    "chunked": raw(
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n"
        b"3;note=x\nhel\n2\nlo\n0\nTrailer: x\n\n"
    ),
    "close-delimited": raw(b"HTTP/1.1 200 OK\n\nhello", close=True),
    "HTTP/1.0": raw(b"HTTP/1.0 200 OK\nContent-Length: 5\n\nhello", close=True),
    "interim response first": raw(
        b"HTTP/1.1 103 Early\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 5\n\nhello"
    ),
    "blank lines first": raw(b"\n\nHTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    "no reason phrase": raw(b"HTTP/1.1 200\nContent-Length: 5\n\nhello"),
}
CUT = {
    "no response": Reply(fault="close_before_response"),
    "head": raw(b"HTTP/1.1 200 OK\nContent-Le", close=True),
    "content-length": raw(b"HTTP/1.1 200 OK\nContent-Length: 9\n\nhello", close=True),
    "inside a chunk": raw(
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n9\nhello", close=True
    ),
    "before the last chunk": raw(
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n", close=True
    ),
    "after the last chunk": raw(
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\n", close=True
    ),
    "reset": Reply(body=b"x" * 2000, fault="reset_mid_body", send_bytes=100),
    "reset without framing": raw(b"HTTP/1.1 200 OK\n\nhello", fault="reset_mid_body"),
}
NO_HTTP = {
    "other protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "switching": b"HTTP/1.1 101 Switching\r\n\r\n",
    "header without a colon": b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    "folded header": b"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab",
    "signed length": b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
    "unknown transfer coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "signed chunk size": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n"
    ),
    "chunk longer than it says": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"
    ),
    "endless head": b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000 + b"\r\n\r\n",
    "endless chunk line": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 70_000
    ),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_whole_response_is_read_exactly(name):
    with ScriptedServer([WHOLE[name]]) as server:
        async with opened() as transport:
            assert await post(transport, server.url) == (200, b"hello")


@pytest.mark.parametrize("name", CUT)
async def test_cut_response_is_an_error(name):
    with ScriptedServer([CUT[name]]) as server:
        async with opened() as transport:
            with pytest.raises(CutResponse):
                await post(transport, server.url)


@pytest.mark.parametrize("name", NO_HTTP)
async def test_bytes_that_are_no_http_are_an_error(name):
    with ScriptedServer([Reply(raw=NO_HTTP[name], close=True)]) as server:
        async with opened() as transport:
            with pytest.raises(CutResponse):
                await post(transport, server.url)


async def test_cut_body_hands_out_what_had_arrived():
    with ScriptedServer([CUT["inside a chunk"]]) as server:
        async with opened() as transport:
            with pytest.raises(CutResponse) as caught:
                await post(transport, server.url)

    assert (caught.value.status, caught.value.partial) == (200, b"hello")


async def test_refused_connection_is_a_connect_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with opened() as transport:
        with pytest.raises(httpx.ConnectError):
            await post(transport, f"http://127.0.0.1:{port}/v1")


async def test_declared_length_over_the_cap_is_not_read():
    reply = Reply(headers={"Content-Length": "9" * 30})
    with ScriptedServer([reply]) as server:
        async with opened() as transport:
            with pytest.raises(OversizeBody):
                await post(transport, server.url)


@pytest.mark.parametrize("framing", ["chunked", "close-delimited"])
async def test_body_that_grows_over_the_cap_is_dropped(framing):
    head = b"HTTP/1.1 200 OK\r\n"
    if framing == "chunked":
        body = b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n" * 3
    else:
        body = b"\r\n" + b"hello" * 3
    with ScriptedServer([Reply(raw=head + body, close=True)]) as server:
        async with opened(body_cap_bytes=12) as transport:
            with pytest.raises(OversizeBody):
                await post(transport, server.url)


async def test_body_of_many_small_chunks_is_read_in_linear_time():
    count = 60_000
    chunks = b"1\r\na\r\n" * count
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with ScriptedServer([Reply(raw=head + chunks + b"0\r\n\r\n")]) as server:
        async with opened() as transport:
            _, body = await post(transport, server.url)

    assert len(body) == count


async def test_connection_is_kept_for_the_next_request():
    with ScriptedServer([Reply(body=b"hello")]) as server:
        async with opened() as transport:
            for _ in range(3):
                await post(transport, server.url)

    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(headers={"Connection": "close"}),
        Reply(raw=b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nstray"),
    ],
    ids=["says close", "HTTP/1.0", "stray bytes"],
)
async def test_connection_is_not_kept_where_its_state_is_doubtful(reply):
    with ScriptedServer([reply]) as server:
        async with opened() as transport:
            await post(transport, server.url)
            await post(transport, server.url)

    assert server.connections == 2


async def test_bytes_that_arrive_while_idle_are_never_the_next_answer():
    late = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate"
    sent = anyio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def serve():
            first, _ = listener.accept()
            with first:
                first.recv(65536)
                first.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                anyio.from_thread.run(received.wait)
                first.sendall(late)
                anyio.from_thread.run_sync(sent.set)
                second, _ = listener.accept()
                with second:
                    second.recv(65536)
                    second.sendall(late.replace(b"late", b"true"))

        received = anyio.Event()
        async with opened() as transport, anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, serve)
            await post(transport, url)
            received.set()
            await sent.wait()
            _, body = await post(transport, url)

    assert body == b"true"


async def test_connection_closed_while_idle_is_not_used_again():
    with ScriptedServer([Reply(body=b"hello", close=True)]) as server:
        async with opened() as transport:
            await post(transport, server.url)
            await closed_by_peer(transport)
            await post(transport, server.url)

    assert (len(server.requests), server.connections) == (2, 2)


async def test_kept_connection_that_dies_unanswered_is_one_attempt():
    silent = Reply(fault="close_before_response")
    with ScriptedServer([Reply(), silent]) as server:
        async with opened() as transport:
            await post(transport, server.url)
            with pytest.raises(CutResponse):
                await post(transport, server.url)

    assert [request.connection for request in server.requests] == [0, 0]


async def test_connection_that_answered_in_part_is_not_replaced():
    cut = raw(b"HTTP/1.1 200 OK\nContent-Length: 9\n\nhello", close=True)
    with ScriptedServer([Reply(), cut]) as server:
        async with opened() as transport:
            await post(transport, server.url)
            with pytest.raises(CutResponse):
                await post(transport, server.url)

    assert len(server.requests) == 2


async def test_idle_connection_past_its_age_is_closed():
    moments = iter([0.0, 100.0, 100.0])
    with ScriptedServer([Reply()]) as server:
        async with opened(clock=lambda: next(moments)) as transport:
            await post(transport, server.url)
            await post(transport, server.url)

    assert server.connections == 2


async def test_cancelled_request_leaves_no_connection_behind():
    with ScriptedServer([Reply(fault="hang"), Reply(body=b"hello")]) as server:
        async with opened() as transport:
            with anyio.move_on_after(0.05):
                await post(transport, server.url)
            found = await post(transport, server.url)

    assert (found, server.connections) == ((200, b"hello"), 2)


async def test_answer_before_the_whole_request_was_read_is_kept():
    refusal = (
        b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(refusal)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

        async with opened() as transport, anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, serve)
            status, _ = await post(transport, url, b"x" * 2_000_000)

    assert status == 413


async def test_redirect_is_handed_back():
    with ScriptedServer([Reply(307, {"Location": "http://127.0.0.1:1/"})]) as server:
        async with opened() as transport:
            status, _ = await post(transport, server.url)

    assert (status, len(server.requests)) == (307, 1)


async def test_header_with_a_line_break_is_refused():
    async with opened() as transport:
        request = httpx.Request("POST", "http://127.0.0.1:1/")
        request.headers = httpx.Headers([(b"a", b"b\r\nc: d")])
        with pytest.raises(httpx.LocalProtocolError):
            await transport.handle_async_request(request)


async def test_serves_an_httpx_client():
    with ScriptedServer([Reply(body=b"hello")]) as server:
        async with httpx.AsyncClient(transport=HttpTransport()) as client:
            response = await client.post(server.url, content=b"{}")

    assert response.text == "hello"


def tls_contexts():
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    client = ssl.create_default_context(cafile=TLS / "certificate.pem")
    return server, client


async def test_https_is_spoken_and_its_connection_kept():
    server_side, client_side = tls_contexts()
    with ScriptedServer([Reply(body=b"hello")], tls=server_side) as server:
        async with opened(ssl_context=client_side) as transport:
            for _ in range(3):
                assert await post(transport, server.url) == (200, b"hello")

    assert server.connections == 1


async def test_certificate_that_nobody_vouches_for_is_refused():
    server_side, _ = tls_contexts()
    with ScriptedServer([Reply(body=b"hello")], tls=server_side) as server:
        async with opened() as transport:
            with pytest.raises(httpx.ConnectError):
                await post(transport, server.url)

    assert server.requests == []


async def test_cut_body_over_https_is_an_error():
    server_side, client_side = tls_contexts()
    cut = raw(b"HTTP/1.1 200 OK\nContent-Length: 9\n\nhello", close=True)
    with ScriptedServer([cut], tls=server_side) as server:
        async with opened(ssl_context=client_side) as transport:
            with pytest.raises(CutResponse):
                await post(transport, server.url)


async def test_connection_that_its_server_closes_is_never_idle():
    last = raw(b"HTTP/1.1 200 OK\nConnection: close\nContent-Length: 5\n\nhello")
    with ScriptedServer([last]) as server:
        async with opened() as transport:
            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(post, transport, server.url)
            idle = sum(map(len, transport._idle.values()))

    assert idle == 0
    assert len(server.requests) == 8
