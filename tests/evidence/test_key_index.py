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


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 7))))
def test_what_was_asked_before_a_record_changes_nothing(steps):
    index = KeyIndex()
    expected = defaultdict(list)
    for position, (asked, subject, kind) in enumerate(steps):
        assert list(index.chain(key(asked))) == expected[asked]
        index.add(key(subject), kind, 0)
        expected[subject].insert(0, position)
        assert list(index.chain(key(asked))) == expected[asked]


def test_the_types_of_a_chain_come_newest_first():
    index = KeyIndex()
    for subject, kind in [(1, 0), (2, 3), (1, 2), (1, 2)]:
        index.add(key(subject), kind, 0)

    assert [index.types_of(key(n)) for n in (1, 2, 3)] == [[2, 2, 0], [3], []]


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
        assert not index.types_of(key(number))
        index.add(key(number), 1, MAX_NUMBER)

    assert all(list(index.chain(key(n))) == [n] for n in range(5000))
    assert index.number(4999) == MAX_NUMBER
