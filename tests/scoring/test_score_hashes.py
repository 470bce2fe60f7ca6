"""Score hashes are held as bytes and read, written and compared as their texts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import content_hash, hash_bytes
from harness.scoring.score_hashes import NO_SCORE, ScoreHashes

HASHES = st.lists(st.binary(max_size=3).map(hash_bytes), max_size=5)
MANY = [content_hash(number) for number in range(2500)]


def text_of(hashes):
    return json.dumps(hashes, separators=(",", ":"))[1:-1]


@given(HASHES)
def test_hashes_come_back_as_they_were_added(hashes):
    held = ScoreHashes(hashes)

    assert ([*held], len(held), held[:2]) == (hashes, len(hashes), tuple(hashes[:2]))


@given(HASHES)
def test_the_text_is_that_of_a_json_list(hashes):
    assert "".join(ScoreHashes(hashes).texts()) == text_of(hashes)


def test_a_long_text_comes_in_pieces_and_is_read_back():
    held = ScoreHashes(MANY)
    pieces = [*held.texts()]

    assert len(pieces) == 3
    assert "".join(pieces) == text_of(MANY)
    assert ScoreHashes.from_text("".join(pieces)) == held


@pytest.mark.parametrize(
    "text",
    [
        text_of([MANY[0]]).upper(),
        text_of([MANY[0]])[:-2] + '"',
        text_of([MANY[0]]) + ",",
        text_of([MANY[0][:70]]),
        text_of(MANY[:2]).replace(",", ", "),
        text_of(MANY[:2]).replace(",", ""),
        text_of([MANY[0], "sha512:" + MANY[1][7:]]),
        "null",
        "\u00e9",
    ],
)
def test_any_other_text_is_none(text):
    assert ScoreHashes.from_text(text) is None


def test_no_text_is_no_hashes():
    assert ScoreHashes.from_text("") == ScoreHashes()


def test_places_count_from_either_end():
    held = ScoreHashes(MANY[:3])

    assert (held[0], held[-1]) == (MANY[0], MANY[2])
    with pytest.raises(IndexError):
        held[3]


def test_the_same_hashes_are_equal():
    assert ScoreHashes(MANY[:2]) == ScoreHashes(MANY[:2])
    assert tuple(MANY[:2]) == ScoreHashes(MANY[:2])


def test_other_hashes_are_unequal():
    assert ScoreHashes(MANY[:2]) != ScoreHashes(MANY[1::-1])
    assert ScoreHashes(MANY[:2]) != (MANY[0],)
    assert ScoreHashes(MANY[:2]) != MANY[:2]


def test_an_episode_without_a_score_has_its_place():
    held = ScoreHashes([MANY[0], NO_SCORE])

    assert [*held] == [MANY[0], NO_SCORE]
