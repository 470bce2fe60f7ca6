"""Every slot source and filter yields exactly the declared values, typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmark.slots import (
    SlotError,
    parse_filter,
    parse_source,
    source_values,
)
from tests.benchmark.shop import loaded

ROW = {"price": 30, "name": "Lamp", "new": True, "none": None, "ratio": 1.0}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return loaded(tmp_path_factory.mktemp("shop"))


def _values(pack, source, condition=""):
    candidates = source_values(
        parse_source(source),
        parse_filter(condition) if condition else (),
        pack.fixtures,
        pack.tools.by_name,
    )
    return [candidate.value for candidate in candidates]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("fixture:items.name", ["Lamp", "Rug", "Torch"]),
        ("items.name", ["Lamp", "Rug", "Torch"]),
        ("fixture:items.kind", ["light", "floor"]),
        ("fixture:items.new", [True]),
        ("enum:get_item.unit", ["piece", "box"]),
        ("literal:[1, '1', 1, 1.0, True, None]", [1, "1", 1.0, True, None]),
        ("literal:200000", [200000]),
        ("literal:'two words'", ["two words"]),
        ("literal:-1.5", [-1.5]),
        ("literal:{'a': [1]}", [{"a": [1]}]),
        ("range:{min: 1, max: 5, step: 2}", [1, 3, 5]),
        ('range:{"min": 1, "max": 3}', [1, 2, 3]),
        ("range:{'min': 3, 'max': 1}", [3, 2, 1]),
        ("range:{max: 2, min: 2}", [2]),
        ("absent:items", ["I-9", "I-8"]),
    ],
)
def test_source_yields_its_values(pack, source, expected):
    values = _values(pack, source)

    assert values == expected
    assert list(map(type, values)) == list(map(type, expected))


@pytest.mark.parametrize(
    "source",
    [
        "fixture:items",
        "fixture:things.name",
        "fixture:items.colour",
        "enum:get_item.item_id",
        "enum:fly.unit",
        "absent:orders",
        "absent:",
        "literal:name",
        "literal:__import__('os')",
        "literal:{1, 2}",
        "literal:{1: 2}",
        "literal:1e999",
        f"literal:{'-' * 20_000}1",
        "range:{min: 1}",
        "range:{min: 1, max: 2.0}",
        "range:{min: 1, max: 2, step: 0}",
        "range:{min: 1, max: 2, by: 1}",
        "range:{min: True, max: 2}",
        "range:{min: 1, max: 10000000}",
        "random:items",
        "items",
        "",
    ],
)
def test_unusable_source_is_refused(pack, source):
    with pytest.raises(SlotError):
        _values(pack, source)


def test_value_remembers_every_row_that_holds_it(pack):
    light, floor = source_values(
        parse_source("fixture:items.kind"), (), pack.fixtures, pack.tools.by_name
    )

    assert light.references == ('["items","I-1"]', '["items","I-3"]')
    assert floor.references == ('["items","I-2"]',)


def test_filter_narrows_a_fixture_source(pack):
    condition = "kind == 'light' and price < 20"

    assert _values(pack, "fixture:items.name", condition) == ["Torch"]


def test_filter_that_leaves_nothing_is_refused(pack):
    with pytest.raises(SlotError, match="no row"):
        _values(pack, "fixture:items.name", "price > 100")


def test_only_fixtures_can_be_filtered(pack):
    with pytest.raises(SlotError, match="fixture source"):
        _values(pack, "literal:[1, 2]", "price > 1")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("price == 30", True),
        ("price == 30.0", True),
        ("price == '30'", False),
        ("price != '30'", True),
        ("price < 31", True),
        ("price <= 30", True),
        ("price > 30", False),
        ("price >= 30", True),
        ("price > '1'", False),
        ("name < 'Z'", True),
        ("name in ['Lamp', 'Rug']", True),
        ("name not in ['Lamp']", False),
        ("price in (30,)", True),
        ("new == True", True),
        ("new == true", True),
        ("new == 1", False),
        ("none == null", True),
        ("none == None", True),
        ("missing == 1", False),
        ("missing != 1", False),
        ("missing not in [1]", False),
    ],
)
def test_filter_term(text, holds):
    (term,) = parse_filter(text)

    assert term.holds(ROW) is holds


@pytest.mark.parametrize(
    "text",
    [
        "price == 1 or price == 2",
        "not price == 1",
        "1 == price",
        "1 < price < 3",
        "price is 1",
        "price == other",
        "price + 1 == 2",
        "name in 'Lamp'",
        "row.price == 1",
        "f(price) == 1",
        "price ==",
        f"price == {'-' * 20_000}1",
        "(price == 1 or price == 2) and new == True",
    ],
)
def test_filter_outside_the_contract_is_refused(text):
    with pytest.raises(SlotError):
        parse_filter(text)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 7))
def test_range_includes_its_start_and_stays_inside(low, high, step):
    values = parse_source(f"range:{{min: {low}, max: {high}, step: {step}}}").values

    assert values[0] == low
    assert all(min(low, high) <= value <= max(low, high) for value in values)
    assert abs(values[-1] - high) < step
