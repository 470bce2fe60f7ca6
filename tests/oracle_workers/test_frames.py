"""Frames on a stream: whole, in order, capped, and torn."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle_workers.frames import (
    FrameError,
    announced_size,
    frame,
    read_frame,
    write_frame,
)


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_frames_come_back_as_they_were_written(payloads):
    reader, writer = os.pipe()
    try:
        for payload in payloads:
            write_frame(writer, payload)
        os.close(writer)
        read = [read_frame(reader) for _ in payloads]
        end = read_frame(reader)
    finally:
        os.close(reader)

    assert (read, end) == (payloads, None)


def test_header_is_four_bytes_big_endian():
    assert frame(b"abc") == b"\0\0\0\3abc"
    assert announced_size(b"\0\1\0\0") == 65536


def test_frame_over_the_cap_is_refused_before_it_is_read(pipe):
    reader, writer = pipe
    write_frame(writer, b"x" * 11)

    with pytest.raises(FrameError, match="11 bytes, at most 10"):
        read_frame(reader, 10)


@pytest.mark.parametrize("cut", [1, 3, 4, 6])
def test_stream_that_ends_inside_a_frame_is_an_error(pipe, cut):
    reader, writer = pipe
    os.write(writer, frame(b"abc")[:cut])
    os.close(writer)

    with pytest.raises(FrameError, match="ended"):
        read_frame(reader)
