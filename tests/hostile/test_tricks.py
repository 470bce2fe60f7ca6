"""Every hostile pack at every level: held where that is claimed, seen where not."""

import pytest

from tests.hostile.tricks import GROUPS, LEVELS, PACKS, read_tricks

TRICKS = {trick.name: trick for trick in read_tricks()}


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", TRICKS)
def test_trick_is_held_where_claimed_and_seen_where_not(name, level, play, sandbox):
    trick = TRICKS[name]
    if not sandbox[level]["available"]:
        pytest.skip(f"{level}: {sandbox[level]['missing']}")
    if trick.needs == "signal scope" and trick.is_held_at(level):
        applied = sandbox[level]["applied"]
        if not applied["landlock"]["scope"]:
            pytest.skip("this kernel's Landlock has no signal scope (ABI 6)")

    outcome = play(trick)[level]

    assert outcome.cause == trick.cause_at(level), outcome
    if trick.is_held_at(level):
        assert outcome.escapes == set(), outcome
    elif trick.shows:
        assert outcome.escapes == set(trick.shows), outcome


def test_every_group_of_packs_has_a_title():
    assert {path.name for path in PACKS.iterdir()} == set(GROUPS)


def test_there_are_at_least_forty_tricks_with_names_of_their_own():
    assert len(TRICKS) == len(read_tricks()) >= 40
