"""Templates become tasks: deterministic, typed, and with the declared words."""

import json

import pytest

from harness.benchmark import templates as module
from harness.benchmark.template_reader import safe_token
from harness.errors import PackError
from tests.benchmark.shop import (
    BUY,
    DONE,
    GET,
    HIDDEN,
    ITEM,
    TWO,
    answer,
    purchase,
    tasks_of,
    template,
)


def test_slots_bind_as_a_product_in_order(tmp_path):
    slots = {"item_id": ITEM, "quantity": {**TWO, "source": "literal:[2, 3]"}}

    tasks = tasks_of(tmp_path, purchase(slots=slots))

    assert [tuple(t.slot_bindings["slots"].values()) for t in tasks] == [
        (item, number) for item in ("I-1", "I-2", "I-3") for number in (2, 3)
    ]
    assert [t.variant_index for t in tasks] == list(range(6))


def test_ids_and_seeds_are_the_same_twice_and_differ_by_task(tmp_path):
    one, two = tasks_of(tmp_path / "a"), tasks_of(tmp_path / "b")

    assert [(t.task_id, t.seed) for t in one] == [(t.task_id, t.seed) for t in two]
    assert len({t.task_id for t in one}) == len({t.seed for t in one}) == 3
    assert all(safe_token(t.task_id) and t.seed < 2**53 for t in one)


def test_publication_seed_changes_task_seeds_and_no_ids(tmp_path):
    one, two = tasks_of(tmp_path, seed=0), tasks_of(tmp_path, seed=1)

    assert [t.task_id for t in one] == [t.task_id for t in two]
    assert {t.seed for t in one}.isdisjoint(t.seed for t in two)


def test_version_of_the_pack_changes_ids(tmp_path):
    one = tasks_of(tmp_path / "a")
    two = tasks_of(tmp_path / "b", manifest={"version": "2"})

    assert {t.task_id for t in one}.isdisjoint(t.task_id for t in two)


def test_required_argument_comes_from_its_slot_and_keeps_its_type(tmp_path):
    task = tasks_of(tmp_path, purchase())[0]

    (call,) = task.turns[1].calls
    assert call.arguments == {"confirm": True, "item_id": "I-1", "quantity": 2}


def test_optional_argument_never_comes_from_a_slot(tmp_path):
    slots = {
        "item_id": ITEM,
        "unit": {"source": "enum:get_item.unit", "visible_in_first_turn": True},
    }
    words = {"en": "Show {item_id} by the {unit}."}

    task = tasks_of(tmp_path, template(slots=slots, user_turn_templates=words))[0]

    assert task.turns[0].calls[0].arguments == {"item_id": "I-1"}


def test_placeholders_are_filled_at_any_depth_in_one_pass(tmp_path):
    slots = {
        "item_id": {**ITEM, "source": "literal:'{number}'"},
        "number": {**TWO, "source": "literal:7"},
    }
    args = {"item_id": "<{item_id}>", "deep": [{"n": "{number}", "t": "no {number}"}]}
    words = {"en": "{item_id} and {number}"}

    task = tasks_of(
        tmp_path,
        template(
            slots=slots,
            user_turn_templates=words,
            assistant_milestones=[{**GET, "args": args}, DONE],
        ),
    )[0]

    assert task.turns[0].calls[0].arguments == {
        "item_id": "<{number}>",
        "deep": [{"n": 7, "t": "no 7"}],
    }
    assert task.user_message == "{number} and 7"


def test_one_call_group_is_one_turn_and_groups_are_renumbered(tmp_path):
    group = {**GET, "call_group": 7}
    milestones = [group, group, GET, GET, {**GET, "call_group": "x"}, DONE]

    task = tasks_of(
        tmp_path, template(turn_policy="multi_tool", assistant_milestones=milestones)
    )[0]

    assert [(len(t.calls), t.call_group) for t in task.turns] == [
        (2, 0),
        (1, 1),
        (1, 2),
        (1, 3),
        (0, None),
    ]


def test_wording_of_a_milestone_id_beats_its_type_and_the_manifest(tmp_path):
    manifest = {"assistant_turn_templates": {"final_answer": {"en": "manifest"}}}
    milestones = [GET, {**DONE, "id": "end"}]
    words = {"end": {"en": "own {item_id}"}, "final_answer": {"en": "type"}}

    def said(folder, **changes):
        made = template(assistant_milestones=milestones, **changes)
        return tasks_of(tmp_path / folder, made, manifest=manifest)[0].turns[-1].text

    assert said("a", assistant_turn_templates=words) == "own I-1"
    assert said("b", assistant_turn_templates={"final_answer": {"en": "t"}}) == "t"
    assert said("c") == "manifest"


def test_question_names_the_label_of_its_slot(tmp_path):
    slot = {**HIDDEN, "label": {"en": "lamp number"}}

    task = tasks_of(
        tmp_path,
        template(
            turn_policy="clarify_only",
            slots={"item_id": slot},
            user_turn_templates={"en": "Show me one."},
            assistant_milestones=[{"type": "ask_for_slot", "slot": "item_id"}],
        ),
    )[0]

    assert "lamp number" in task.turns[0].text
    assert task.slot_bindings["withheld"] == ["item_id"]


def test_several_wordings_take_turns(tmp_path):
    words = {"en": ["Show {item_id}.", "What is {item_id}?"]}

    tasks = tasks_of(tmp_path, template(user_turn_templates=words))

    assert [t.user_message for t in tasks] == [
        "Show I-1.",
        "What is I-2?",
        "Show I-3.",
    ]


def _correction(**update):
    update = {"source": "fixture:items.item_id", **update}
    words = (
        "No: {item_id}, not that."
        if "bind_as" not in update
        else ("Not {item_id} but {better}.")
    )
    return purchase(
        turn_policy="correction",
        assistant_milestones=[
            {"type": "ask_confirm", "id": "one"},
            {"type": "ask_confirm", "id": "two"},
            BUY,
        ],
        user_simulator_turns=[
            answer("one", words, slot_updates={"item_id": update}),
            answer("two", "Yes."),
        ],
    )


def test_correction_that_changes_nothing_is_skipped(tmp_path):
    tasks = tasks_of(tmp_path, _correction())

    assert len(tasks) == 6
    for task in tasks:
        (update,) = task.slot_bindings["slot_updates"]
        old = task.slot_bindings["slots"]["item_id"]
        assert update["values"]["item_id"] != old
        assert task.slot_bindings["decoys"] == {"item_id": [old]}


def test_call_after_a_correction_uses_the_new_value(tmp_path):
    task = tasks_of(tmp_path, _correction())[0]

    (update,) = task.slot_bindings["slot_updates"]
    assert task.turns[2].calls[0].arguments["item_id"] == update["values"]["item_id"]
    assert task.turns[0].user_message == "No: I-2, not that."


def test_alias_lets_the_user_name_old_and_new(tmp_path):
    task = tasks_of(tmp_path, _correction(bind_as="better"))[0]

    assert task.turns[0].user_message == "Not I-1 but I-2."
    assert task.slot_bindings["slot_updates"] == [
        {
            "entry_index": 0,
            "values": {"item_id": "I-2"},
            "aliases": {"better": "I-2"},
        }
    ]


def test_call_with_a_superseded_value_is_a_surface_problem(tmp_path):
    made = _correction()
    made["assistant_milestones"][2] = {
        **BUY,
        "args": {"confirm": True, "item_id": "I-1"},
    }

    problems = {t.surface_problem for t in tasks_of(tmp_path, made)}

    assert problems == {"", "a call uses the superseded value of 'item_id'"}


def test_tool_name_in_a_value_is_a_surface_problem_unless_exempt(tmp_path):
    slots = {"item_id": {**ITEM, "source": "literal:'get_item'"}}

    def problem(folder, **options):
        (task,) = tasks_of(tmp_path / folder, template(slots=slots), **options)
        return task.surface_problem

    exempt = {"surface_guards": {"tool_names_exempt": ["get_item"]}}
    assert problem("a") == "user text names the tool 'get_item'"
    assert problem("b", manifest=exempt) == ""


def test_simulator_turns_of_one_type_answer_in_order(tmp_path):
    made = purchase(
        turn_policy="correction",
        assistant_milestones=[{"type": "ask_confirm"}, {"type": "ask_confirm"}, BUY],
        user_simulator_turns=[
            answer(
                "ask_confirm",
                "No, {item_id}.",
                slot_updates={"item_id": {"source": "fixture:items.item_id"}},
            ),
            answer("ask_confirm", "Yes."),
        ],
    )

    task = tasks_of(tmp_path, made)[0]

    assert [t.user_message for t in task.turns] == ["No, I-2.", "Yes.", None]


def test_languages_are_published_one_at_a_time(tmp_path):
    manifest = {
        "languages": ["en", "de"],
        "assistant_turn_templates": {"final_answer": {"de": "Fertig."}},
    }
    made = template(
        user_turn_templates={"en": "Show {item_id}.", "de": "Zeig {item_id}."}
    )

    german = tasks_of(tmp_path, made, manifest=manifest, language="de")[0]

    assert (german.user_message, german.turns[-1].text) == ("Zeig I-1.", "Fertig.")
    with pytest.raises(PackError, match="no language 'fr'"):
        tasks_of(tmp_path, made, manifest=manifest, language="fr")


def test_large_products_are_sampled_by_the_seed(tmp_path):
    slots = {
        "item_id": ITEM,
        "quantity": {**TWO, "source": "range:{min: 1, max: 5000}"},
    }

    def chosen(seed):
        tasks = tasks_of(tmp_path, purchase(slots=slots), seed=seed)
        return [json.dumps(t.slot_bindings["slots"]) for t in tasks]

    assert len(set(chosen(0))) == module.MAX_VARIANTS
    assert chosen(0) == chosen(0)
    assert chosen(0) != chosen(1)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a", True),
        ("sách-1", True),
        ("", False),
        (".", False),
        ("..", False),
        ("a b", False),
        ("a/b", False),
        ("a\x00b", False),
        ("a|b", False),
        ("x" * 201, False),
    ],
)
def test_safe_tokens(text, safe):
    assert safe_token(text) is safe
