"""The reader against every way that one response can arrive in pieces or be cut."""

import itertools

import anyio
import pytest
from anyio.abc import ByteReceiveStream
from hypothesis import given
from hypothesis import strategies as st

from harness.candidates.http1 import (
    BrokenResponseError,
    NoResponseError,
    OversizeResponseError,
    read_response,
)

CAP = 1000


class Pieces(ByteReceiveStream):
    """A connection that delivers these pieces and is closed after them."""

    def __init__(self, pieces):
        self._pieces = [piece for piece in pieces if piece]

    async def receive(self, max_bytes=65536):
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.pop(0)

    async def aclose(self):
        self._pieces.clear()


def read(*pieces):
    async def run():
        return await read_response(Pieces(pieces), body_cap_bytes=CAP)

    return anyio.run(run)


def chunked(body, sizes):
    framed = b""
    for size in sizes:
        piece, body = body[:size], body[size:]
        if piece:
            framed += b"%X\r\n%s\r\n" % (len(piece), piece)
    if body:
        framed += b"%x\r\n%s\r\n" % (len(body), body)
    return framed + b"0\r\n\r\n"


BODIES = st.binary(max_size=40)
SIZES = st.lists(st.integers(1, 9), max_size=5)


@st.composite
def responses(draw):
    """A framed response: its bytes and its body."""
    body = draw(BODIES)
    head = b"HTTP/1.1 200 OK\r\nServer: x\r\n"
    if draw(st.booleans()):
        framing = b"Content-Length: %d\r\n\r\n" % len(body)
        return head + framing + body, body
    framing = b"Transfer-Encoding: chunked\r\n\r\n"
    return head + framing + chunked(body, draw(SIZES)), body


@given(responses(), st.data())
def test_segments_do_not_change_what_is_read(response, data):
    wire, body = response
    cuts = sorted(data.draw(st.sets(st.integers(0, len(wire)), max_size=8)))
    edges = [0, *cuts, len(wire)]
    pieces = [wire[a:b] for a, b in itertools.pairwise(edges)]

    found = read(*pieces)

    assert (found.body, found.reusable) == (body, True)


@given(responses(), st.data())
def test_response_cut_anywhere_is_an_error(response, data):
    wire, body = response
    cut = data.draw(st.integers(0, len(wire) - 1))

    with pytest.raises((NoResponseError, BrokenResponseError)) as caught:
        read(wire[:cut])

    assert body.startswith(getattr(caught.value, "partial", b""))


@given(st.binary(max_size=80))
def test_any_bytes_give_a_response_or_a_named_error(noise):
    wire = b"HTTP/1.1 200 OK\r\n" + noise

    try:
        found = read(wire)
    except (NoResponseError, BrokenResponseError, OversizeResponseError):
        return

    assert found.status == 200


def test_nothing_at_all_is_told_apart_from_a_cut_response():
    with pytest.raises(NoResponseError):
        read()


@pytest.mark.parametrize("status", [204, 304])
def test_response_without_a_body_ends_with_its_head(status):
    found = read(b"HTTP/1.1 %d X\r\nContent-Length: 9\r\n\r\n" % status)

    assert (found.body, found.reusable) == (b"", True)


def test_length_beside_chunks_leaves_the_connection_doubtful():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"

    found = read(head + chunked(b"hello", [5]))

    assert (found.body, found.reusable) == (b"hello", False)


def test_trailers_without_end_are_refused():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"

    with pytest.raises(BrokenResponseError):
        read(head + b"A: b\r\n" * 20_000)
