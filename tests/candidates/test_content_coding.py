import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.candidates.content_coding import (
    ContentCodingError,
    OversizeContentError,
    decode_content,
)

CAP = 1000


def raw_deflate(data):
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        (None, bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("deflate, gzip", lambda data: gzip.compress(zlib.compress(data))),
    ],
)
@given(data=st.binary(max_size=200))
def test_content_coding_is_undone(encoding, encode, data):
    assert decode_content(encoding, encode(data), cap_bytes=CAP) == data


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)],
)
def test_stream_cut_anywhere_is_an_error(encoding, encode):
    whole = encode(b"a complete answer that is long enough to be cut")
    survivors = []

    for cut in range(1, len(whole)):
        try:
            survivors.append(decode_content(encoding, whole[:cut], cap_bytes=CAP))
        except ContentCodingError:
            continue

    assert survivors == []


def test_two_gzip_members_are_one_body():
    body = gzip.compress(b"a") + gzip.compress(b"b")

    assert decode_content("gzip", body, cap_bytes=CAP) == b"ab"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"x"),
        ("gzip", b"plain"),
        ("gzip", gzip.compress(b"a", mtime=0) + b"junk"),
        ("deflate", zlib.compress(b"a") + b"junk"),
    ],
)
def test_undecodable_body_is_an_error(encoding, body):
    with pytest.raises(ContentCodingError):
        decode_content(encoding, body, cap_bytes=CAP)


def test_small_body_that_grows_over_the_cap_is_refused():
    with pytest.raises(OversizeContentError):
        decode_content("gzip", gzip.compress(b" " * (CAP + 1)), cap_bytes=CAP)


def test_empty_body_with_a_declared_coding_is_empty():
    assert decode_content("gzip", b"", cap_bytes=CAP) == b""
