"""Conditions come from every row, and what differs is said to."""

from hypothesis import given
from hypothesis import strategies as st

from harness.evaluations.conditions import MOST_VALUES, REST, ConditionCounts

ROWS = st.lists(
    st.dictionaries(
        st.sampled_from("abc"), st.sampled_from(["x", "y", 1, 1.0]), max_size=3
    ),
    max_size=12,
)


def counted(rows):
    counts = ConditionCounts()
    for row in rows:
        counts.add(row)
    return counts.result()


def test_equal_rows_are_not_mixed():
    found = counted([{"device": "cpu"}] * 3)

    assert found == {"device": {"values": ["cpu"], "rows": [3], "mixed": False}}


def test_row_made_elsewhere_is_seen_wherever_it_stands():
    rows = [{"device": "cpu"}, {"device": "cpu"}, {"device": "cuda"}]

    assert counted(rows)["device"] == {
        "values": ["cpu", "cuda"],
        "rows": [2, 1],
        "mixed": True,
    }


def test_row_that_says_nothing_is_unknown():
    found = counted([{"device": "cpu"}, {}])

    assert found["device"]["values"] == ["cpu", "unknown"]
    assert found["device"]["mixed"]


def test_objects_are_spread_out():
    assert set(counted([{"versions": {"torch": "2", "os": {"k": 1}}}])) == {
        "versions.torch",
        "versions.os.k",
    }


def test_further_values_are_counted_together():
    found = counted([{"fingerprint": str(n)} for n in range(MOST_VALUES + 7)])

    member = found["fingerprint"]
    assert len(member["values"]) == MOST_VALUES + 1
    assert member["rows"][member["values"].index(REST)] == 7


@given(ROWS)
def test_counts_of_a_condition_are_all_rows(rows):
    assert all(sum(each["rows"]) == len(rows) for each in counted(rows).values())


@given(ROWS, st.randoms())
def test_order_of_rows_changes_nothing(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)

    assert counted(shuffled) == counted(rows)
