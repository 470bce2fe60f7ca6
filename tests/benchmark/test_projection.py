"""Rows become executable tasks: dependencies, policies, slots, refusals."""

import copy

import pytest

from harness.benchmark.projection import project_task
from harness.benchmark.rows import GoldCall, build_row
from harness.benchmark.templates import expand
from harness.conversation.script import script_from_row
from harness.errors import ConversationError
from harness.evidence.records import Record
from tests.benchmark.shop import (
    BUY,
    GET,
    HIDDEN,
    ITEM,
    answer,
    loaded,
    purchase,
    template,
)

ZERO = "sha256:" + "0" * 64
RESULTS = {
    "get_item": {"item": {"price": 30}, "similar": [{"item_id": "I-3"}]},
    "buy_item": {"status": "sold"},
}


def _rows(pack, resolved=None):
    """Return rows of every task as a gold run with fixed results would make them."""
    rows = []
    for task in expand(pack, seed=0):
        calls = []
        for turn in task.turns:
            for position, call in enumerate(turn.calls):
                arguments = {**call.arguments, **(resolved or {}).get(len(calls), {})}
                calls.append(
                    GoldCall(
                        turn.turn_index,
                        turn.call_group,
                        position,
                        call.name,
                        arguments,
                        RESULTS[call.name],
                        ZERO,
                        ZERO,
                    )
                )
        rows.append(build_row(pack, task, tuple(calls)))
    return rows


def _project(pack, row):
    return project_task(pack, row, script_from_row(row, ZERO), ZERO)


@pytest.fixture(scope="module")
def buying(tmp_path_factory):
    pack = loaded(tmp_path_factory.mktemp("shop"), purchase())
    return pack, _rows(pack)


def test_confirmed_turns_and_policies_come_from_the_pack(buying):
    pack, rows = buying

    part = _project(pack, rows[0])

    assert part.confirmed_call_turns == (1,)
    assert [p.semantic_payload() for p in part.tool_policies] == [
        {
            "function_name": "get_item",
            "mutates": False,
            "requires_confirmation": False,
            "confirmation_parameter": None,
        },
        {
            "function_name": "buy_item",
            "mutates": True,
            "requires_confirmation": True,
            "confirmation_parameter": "confirm",
        },
    ]
    assert [(a.name, a.category) for a in part.assertions] == [("assert_sold", "state")]


def test_assertion_task_holds_template_row_and_slots(buying):
    pack, rows = buying

    task = _project(pack, rows[0]).assertion_task

    assert task["slots"] == {"item_id": "I-1", "quantity": 2}
    assert task["unresolved_slots"] == []
    assert task["task_id"] == rows[0]["task_id"]
    assert task["assertion_task_schema_version"] == "1.0"
    assert task["expected_tool_calls"][0]["arguments"]["quantity"] == 2


def test_part_survives_its_payload(buying):
    pack, rows = buying
    part = _project(pack, rows[0])

    assert isinstance(part, Record)
    assert type(part).from_payload(part.semantic_payload()) == part


def test_dependencies_name_producer_consumer_and_type(tmp_path):
    marker = {"from_result": {"call": "first", "path": "item.price"}}
    args = {
        "item_id": {"from_result": {"call": "first", "path": "similar.0.item_id"}},
        "deep": [{"price": marker}],
    }
    pack = loaded(
        tmp_path,
        template(
            turn_policy="dependent_call",
            assistant_milestones=[{**GET, "id": "first"}, {**GET, "args": args}],
        ),
    )
    resolved = {1: {"item_id": "I-3", "deep": [{"price": 30}]}}

    first, second = _project(pack, _rows(pack, resolved)[0]).dependencies

    assert first.semantic_payload() == {
        "dependency_index": 0,
        "consumer_call_index": 1,
        "consumer_turn_index": 1,
        "consumer_position_in_turn": 0,
        "argument_path": ["item_id"],
        "producer_call_index": 0,
        "producer_turn_index": 0,
        "result_path": ["similar", "0", "item_id"],
        "expected_value_type": "string",
    }
    assert second.argument_path == ("deep", "0", "price")
    assert second.expected_value_type == "integer"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda row: row.update(pack_version="0.9"), "another pack"),
        (lambda row: row.update(template_id="other"), "no such template"),
        (lambda row: row.update(turn_policy="multi_tool"), "not its template's"),
        (lambda row: row.update(success_assertions=["assert_x"]), "cannot judge"),
        (
            lambda row: row["tools"][0]["function"].update(description="new"),
            "not the pack's",
        ),
    ],
)
def test_row_that_does_not_fit_the_pack_is_refused(buying, change, word):
    pack, rows = buying
    row = copy.deepcopy(rows[0])
    change(row)

    with pytest.raises(ConversationError, match=word) as caught:
        _project(pack, row)

    assert caught.value.code == "eval_executable_projection_invalid"


def _foreign(row, **metadata):
    row = copy.deepcopy(row)
    row["slot_bindings"] = None
    row["metadata"].update(metadata)
    return row


def test_foreign_slots_are_read_from_the_opening_turn(tmp_path):
    slots = {
        "item_id": ITEM,
        "name": {"source": "fixture:items.name", "visible_in_first_turn": True},
    }
    pack = loaded(
        tmp_path,
        template(slots=slots, user_turn_templates={"en": "{item_id}, the {name}?"}),
    )
    row = _foreign(_rows(pack)[1])

    task = _project(pack, row).assertion_task

    assert task["slots"] == {"item_id": "I-1", "name": "Rug"}


def test_foreign_slot_that_two_renderings_fit_stays_open(tmp_path):
    slots = {
        "item_id": ITEM,
        "size": {"source": "literal:[1, '1']", "visible_in_first_turn": True},
    }
    words = {"en": "{item_id} in {size}?"}
    pack = loaded(tmp_path, template(slots=slots, user_turn_templates=words))

    task = _project(pack, _foreign(_rows(pack)[0])).assertion_task

    assert task["slots"] == {"item_id": "I-1"}
    assert task["unresolved_slots"] == ["size"]


def test_foreign_paraphrase_falls_back_to_committed_arguments(tmp_path):
    args = {"item_id": "{item_id}", "unit": "x{item_id}"}
    pack = loaded(tmp_path, template(assistant_milestones=[{**GET, "args": args}]))

    task = _project(pack, _foreign(_rows(pack)[1], surface_source="llm")).assertion_task

    assert task["slots"] == {"item_id": "I-2"}


def test_foreign_hidden_slot_comes_from_its_call(tmp_path):
    pack = loaded(
        tmp_path,
        template(
            turn_policy="missing_slot",
            slots={"item_id": HIDDEN},
            user_turn_templates={"en": "Show me one."},
            assistant_milestones=[{"type": "ask_for_slot"}, GET],
            user_simulator_turns=[answer("ask_for_slot", "{item_id}")],
        ),
    )

    task = _project(pack, _foreign(_rows(pack)[2])).assertion_task

    assert task["slots"] == {"item_id": "I-3"}


def test_foreign_slot_with_one_declared_value_has_it(tmp_path):
    made = template(
        turn_policy="irrelevant",
        slots={"item_id": {**ITEM, "source": "literal:'I-1'"}},
        assistant_milestones=[{"type": "decline"}],
    )
    pack = loaded(tmp_path, made)

    task = _project(pack, _foreign(_rows(pack)[0], surface_source="llm")).assertion_task

    assert task["slots"] == {"item_id": "I-1"}


def test_foreign_slot_that_nothing_tells_is_named(tmp_path):
    made = template(
        turn_policy="irrelevant", assistant_milestones=[{"type": "decline"}]
    )
    pack = loaded(tmp_path, made)

    task = _project(pack, _foreign(_rows(pack)[0], surface_source="llm")).assertion_task

    assert task["slots"] == {}
    assert task["unresolved_slots"] == task["unresolved_slots_initial"] == ["item_id"]


def _corrected(*last):
    return purchase(
        turn_policy="correction",
        assistant_milestones=[
            {"type": "ask_confirm", "id": "one"},
            {"type": "ask_confirm", "id": "two"},
            *last,
        ],
        user_simulator_turns=[
            answer(
                "one",
                "No, {item_id}.",
                slot_updates={
                    "item_id": {"source": "fixture:items.item_id", "bind_as": "better"}
                },
            ),
            answer("two", "Yes."),
        ],
    )


def test_foreign_correction_is_read_from_later_calls(tmp_path):
    pack = loaded(tmp_path, _corrected(BUY))
    row = _rows(pack)[0]

    own = _project(pack, row).assertion_task
    foreign = _project(pack, _foreign(row)).assertion_task

    assert own["slots"] == {"item_id": "I-2", "quantity": 2, "better": "I-2"}
    for name in ("slots", "slots_initial", "slot_updates", "unresolved_slots"):
        assert foreign[name] == own[name]


def test_foreign_correction_that_no_call_commits_is_named(tmp_path):
    args = {"confirm": True, "item_id": "I-7"}
    pack = loaded(tmp_path, _corrected({**BUY, "args": args}))

    task = _project(pack, _foreign(_rows(pack)[0])).assertion_task

    assert task["slots_initial"] == {"item_id": "I-1", "quantity": 2}
    assert task["slots"] == {"quantity": 2}
    assert task["unresolved_slots"] == ["item_id", "better"]
    assert task["unresolved_slot_updates"] == [
        {"update_index": 0, "entry_index": 0, "slots": ["item_id", "better"]}
    ]
