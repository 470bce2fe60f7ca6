"""Places when scores are known within bounds."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from harness.stats.ranking import Place, places


def test_equal_scores_share_the_better_place():
    assert places({"a": (3, 3), "b": (3, 3), "c": (1, 1)}) == {
        "a": Place(1, 1),
        "b": Place(1, 1),
        "c": Place(3, 3),
    }


bounds = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted).map(tuple)


@given(st.lists(bounds, min_size=1, max_size=4))
def test_bounds_are_the_places_of_all_possible_scores(drawn):
    named = {str(index): bound for index, bound in enumerate(drawn)}

    seen = {name: set() for name in named}
    for scores in product(*(range(low, high + 1) for low, high in drawn)):
        for index, own in enumerate(scores):
            seen[str(index)].add(1 + sum(other > own for other in scores))
    assert places(named) == {
        name: Place(min(found), max(found)) for name, found in seen.items()
    }
