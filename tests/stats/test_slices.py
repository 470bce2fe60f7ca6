"""Counts by kind of task: every dimension sums to the whole."""

from hypothesis import given
from hypothesis import strategies as st

from harness.stats.slices import SliceCount, Slices

LABELS = st.fixed_dictionaries(
    {
        "turn_policy": st.sampled_from(["single_turn", "irrelevant"]),
        "difficulty": st.none() | st.sampled_from(["easy", "hard"]),
    }
)
OUTCOMES = st.sampled_from([(True, False), (False, False), (False, True)])


def counted(episodes):
    slices = Slices()
    for labels, (success, stop) in episodes:
        slices.add(labels, success=success, stop=stop)
    return slices.result()


def test_slices_are_sorted_with_unlabelled_tasks_last():
    result = counted(
        [
            ({"difficulty": None}, (True, False)),
            ({"difficulty": "hard"}, (False, True)),
            ({"difficulty": "easy"}, (True, False)),
            ({"difficulty": "easy"}, (False, False)),
        ]
    )

    assert result == (
        SliceCount("difficulty", "easy", 2, 1, 0),
        SliceCount("difficulty", "hard", 1, 0, 1),
        SliceCount("difficulty", None, 1, 1, 0),
    )


@given(st.lists(st.tuples(LABELS, OUTCOMES)))
def test_every_dimension_sums_to_the_whole(episodes):
    result = counted(episodes)

    for dimension in ("turn_policy", "difficulty"):
        own = [one for one in result if one.dimension == dimension]
        assert sum(one.planned for one in own) == len(episodes)
        assert sum(one.successes for one in own) == sum(o[0] for _, o in episodes)
        assert sum(one.stops for one in own) == sum(o[1] for _, o in episodes)
