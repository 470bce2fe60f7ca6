"""The index finds every record of a key, and costs little."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from harness.evidence.key_index import MAX_NUMBER, KeyIndex
from tests.evidence.samples import colliding, key


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7), st.integers(0, 9))))
def test_a_chain_holds_the_records_of_its_key_newest_first(records):
    index = KeyIndex()
    expected = defaultdict(list)
    for position, (subject, kind, number) in enumerate(records):
        index.add(key(subject), kind, number)
        expected[subject].insert(0, position)

    assert {s: list(index.chain(key(s))) for s in expected} == expected
    assert sorted(map(list, index.chains())) == sorted(expected.values())
    assert [(index.record_type(i), index.number(i)) for i in range(len(index))] == [
        (kind, number) for _, kind, number in records
    ]


def test_an_unknown_key_has_no_chain():
    assert list(KeyIndex().chain(key(1))) == []


def test_keys_with_one_prefix_share_a_chain():
    index = KeyIndex()
    index.add(colliding(1), 0, 0)
    index.add(colliding(2), 0, 0)

    assert list(index.chain(colliding(1))) == [1, 0]


def test_the_table_grows_without_losing_a_key():
    index = KeyIndex()
    for number in range(5000):
        index.add(key(number), 1, MAX_NUMBER)

    assert all(list(index.chain(key(n))) == [n] for n in range(5000))
    assert index.number(4999) == MAX_NUMBER
