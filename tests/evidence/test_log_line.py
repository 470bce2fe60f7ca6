"""A line proves its own bytes and its own place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import canonical_bytes, canonical_json, content_hash
from harness.errors import EvidenceError
from harness.evidence.log_line import (
    LineError,
    LogFormat,
    decode_line,
    encode_line,
)
from tests.evidence.samples import NOTES, key

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)
NUMBERS = st.none() | st.integers(0, 2**29 - 1)


def line_of(payload, *, sequence=1, number=None, record_type="first"):
    line, _ = encode_line(
        NOTES,
        sequence=sequence,
        record_type=record_type,
        key=key(1),
        number=number,
        payload=canonical_bytes(payload),
    )
    return line


@given(VALUES, NUMBERS, st.integers(1, 10**9))
def test_what_is_written_is_read_back(payload, number, sequence):
    line = line_of(payload, number=number, sequence=sequence)

    entry = decode_line(NOTES, line[:-1], sequence, 0)

    assert (entry.record_type, entry.key, entry.number) == ("first", key(1), number)
    assert canonical_json(entry.payload()) == canonical_json(payload)


@given(VALUES, NUMBERS)
def test_a_line_is_canonical_and_its_hash_is_of_the_rest(payload, number):
    line = line_of(payload, number=number)
    record = json.loads(line)

    assert canonical_bytes(record) + b"\n" == line

    stated = record.pop("record_hash")
    assert content_hash(record) == stated


def test_a_payload_may_hold_the_text_of_a_hash_field():
    payload = {"a": ',"record_hash":"sha256:' + "0" * 64 + '",', "record_hash": "x"}
    line = line_of(payload)

    assert decode_line(NOTES, line[:-1], 1, 0).payload() == payload


def test_every_bit_flip_is_refused():
    line = line_of({"n": 1, "t": "é"}, number=3)[:-1]
    accepted = []
    for position in range(len(line)):
        for bit in range(8):
            damaged = bytearray(line)
            damaged[position] ^= 1 << bit
            try:
                decode_line(NOTES, bytes(damaged), 1, 0)
            except LineError:
                continue
            accepted.append((position, bit))

    assert accepted == []


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"null", b"\xff", line_of({})[:-2], b" " + line_of({})[:-1]],
    ids=["empty", "no record", "null", "no UTF-8", "cut", "space before"],
)
def test_what_is_no_record_is_refused(line):
    with pytest.raises(LineError):
        decode_line(NOTES, line, 1, 0)


def test_a_record_at_another_place_is_refused():
    with pytest.raises(LineError, match="removed, moved or repeated"):
        decode_line(NOTES, line_of({}, sequence=2)[:-1], 1, 0)


def test_a_payload_with_a_repeated_key_is_refused_when_it_is_read():
    line, _ = encode_line(
        NOTES,
        sequence=1,
        record_type="first",
        key=key(1),
        number=None,
        payload=b'{"a":1,"a":2}',
    )
    entry = decode_line(NOTES, line[:-1], 1, 120)

    with pytest.raises(EvidenceError, match="record 1, byte offset 120"):
        entry.payload()


def test_a_format_whose_fields_do_not_surround_the_payload_is_refused():
    with pytest.raises(ValueError, match="do not sort"):
        LogFormat("x", ("a",), "key", None, "eval_artifact_invalid", "y")
