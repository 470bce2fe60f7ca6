"""The fingerprint follows from the fields and from nothing else."""

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import json_equal
from harness.evaluations.numbers import plain_numbers
from harness.evaluations.protocol import (
    GROUPS,
    REASON_CODES,
    Protocol,
    fingerprint,
    leaves,
)
from tests.evaluations.records import of_protocol, protocol

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 0.5, 1.0])
    | st.text(max_size=3)
)
GROUP = st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3)
PROTOCOLS = st.builds(Protocol, **dict.fromkeys(GROUPS, GROUP))


def test_reason_codes_have_the_order_of_the_contract():
    assert REASON_CODES == (
        "rows",
        "prompts",
        "decoding",
        "metric",
        "contract",
        "plan",
        "pack",
        "scope",
        "protocol_version",
        "other",
    )


def test_number_forms_give_one_fingerprint():
    forms = [
        {"temperature": zero, "top_p": one}
        for zero in (0, 0.0, -0.0)
        for one in (1, 1.0)
    ]

    assert (
        len({protocol(decoding=each).as_payload()["fingerprint"] for each in forms})
        == 1
    )


@given(PROTOCOLS, st.randoms())
def test_order_of_keys_gives_one_fingerprint(found, random):
    def shuffled(group):
        items = list(group.items())
        random.shuffle(items)
        return dict(items)

    again = Protocol(**{name: shuffled(getattr(found, name)) for name in GROUPS})

    assert again.as_payload()["fingerprint"] == found.as_payload()["fingerprint"]


@given(PROTOCOLS, PROTOCOLS)
def test_fingerprints_are_equal_where_fields_are(left, right):
    same_fields = json_equal(left.groups(), right.groups())
    same_hash = fingerprint(left.groups()) == fingerprint(right.groups())

    assert same_hash == same_fields


@given(PROTOCOLS, st.sampled_from(GROUPS), st.sampled_from("abc"), SCALARS)
def test_every_field_changes_the_fingerprint(found, group, field, value):
    before = getattr(found, group)
    changed = of_protocol(found, **{group: {**before, field: value}})
    same = field in before and json_equal(
        plain_numbers(before[field]), plain_numbers(value)
    )

    assert (
        changed.as_payload()["fingerprint"] == found.as_payload()["fingerprint"]
    ) == same


def test_version_is_part_of_the_fingerprint():
    groups = protocol().groups()

    assert fingerprint(groups, "1") != fingerprint(groups, "2")


def test_every_group_is_a_field():
    assert tuple(each.name for each in fields(Protocol)) == GROUPS


def test_leaves_name_nested_fields_and_take_lists_whole():
    found = dict(leaves({"a": {"b": 1, "c": {}}, "d": [1, {"e": 2}]}))

    assert found == {"a.b": 1, "a.c": {}, "d": [1, {"e": 2}]}
