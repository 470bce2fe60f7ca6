"""Frames on a stream: whole, in order, capped, and torn."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle_workers.frames import (
    FrameError,
    FrameReader,
    announced_size,
    frame,
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
        frames = FrameReader(reader)
        read = [frames.read() for _ in payloads]
        end = frames.read()
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
        FrameReader(reader, 10).read()


@pytest.mark.parametrize("cut", [1, 3, 4, 6])
def test_stream_that_ends_inside_a_frame_is_an_error(pipe, cut):
    reader, writer = pipe
    os.write(writer, frame(b"abc")[:cut])
    os.close(writer)

    with pytest.raises(FrameError, match="ended"):
        FrameReader(reader).read()


@pytest.mark.parametrize("size", [4091, 4092, 4093, 9000, 60_000])
def test_frame_longer_than_a_piece_is_whole_and_so_is_the_next(pipe, size):
    reader, writer = pipe
    long = bytes(range(256)) * (size // 256) + bytes(size % 256)
    os.write(writer, frame(long) + frame(b"next"))
    frames = FrameReader(reader)

    assert (frames.read(), frames.read()) == (long, b"next")


def test_frames_that_come_in_crumbs_are_whole(pipe):
    reader, writer = pipe
    written = frame(b"abc") + frame(b"")

    def write_crumbs():
        for byte in written:
            os.write(writer, bytes([byte]))

    with ThreadPoolExecutor() as pool:
        pool.submit(write_crumbs)
        frames = FrameReader(reader)
        found = (frames.read(), frames.read())

    assert found == (b"abc", b"")
