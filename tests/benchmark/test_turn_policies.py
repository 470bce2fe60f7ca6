"""Each turn policy accepts its shape and refuses every other one."""

import pytest

from harness.benchmark.turn_policies import confirmed_turns
from tests.benchmark.shop import (
    BUY,
    DONE,
    GET,
    HIDDEN,
    ITEM,
    answer,
    loaded,
    problems_of,
    purchase,
    template,
)

ASK = {"type": "ask_for_slot", "slot": "item_id"}
CONFIRM = {"type": "ask_confirm"}
DECLINE = {"type": "decline"}
UPDATE = {"item_id": {"source": "fixture:items.item_id"}}


def _missing_slot(**changes):
    made = {
        "turn_policy": "missing_slot",
        "slots": {"item_id": HIDDEN},
        "user_turn_templates": {"en": "Show me one."},
        "assistant_milestones": [ASK, GET],
        "user_simulator_turns": [answer("ask_for_slot", "{item_id}")],
    }
    return template(**{**made, **changes})


def _dependent(path="similar.0.item_id", **changes):
    args = {"item_id": {"from_result": {"call": "first", "path": path}}}
    made = {
        "turn_policy": "dependent_call",
        "assistant_milestones": [{**GET, "id": "first"}, {**GET, "args": args}],
    }
    return template(**{**made, **changes})


def _correction(*milestones, **changes):
    made = {
        "turn_policy": "correction",
        "assistant_milestones": list(milestones)
        or [{**CONFIRM, "id": "a"}, {**CONFIRM, "id": "b"}, BUY],
        "user_simulator_turns": [
            answer("a", "No, {item_id}.", slot_updates=UPDATE),
            answer("b", "Yes."),
        ],
    }
    return purchase(**{**made, **changes})


GOOD = {
    "single_turn": template(),
    "multi_tool": template(turn_policy="multi_tool", assistant_milestones=[GET, GET]),
    "missing_slot": _missing_slot(),
    "confirmation": purchase(),
    "correction": _correction(),
    "dependent_call": _dependent(),
    "negative_path": template(
        turn_policy="negative_path",
        slots={"item_id": {**ITEM, "source": "absent:items"}},
    ),
    "clarify_only": _missing_slot(
        turn_policy="clarify_only", assistant_milestones=[ASK], user_simulator_turns=[]
    ),
    "irrelevant": template(turn_policy="irrelevant", assistant_milestones=[DECLINE]),
}


@pytest.mark.parametrize("policy", GOOD)
def test_policy_accepts_its_shape(tmp_path, policy):
    assert problems_of(tmp_path, GOOD[policy]) == []


BAD = [
    (template(assistant_milestones=[DONE]), "single_turn needs at least one"),
    (
        template(user_simulator_turns=[answer("tool_call", "And?")]),
        "single_turn has one user turn",
    ),
    (template(turn_policy="multi_tool"), "multi_tool needs at least two"),
    (_missing_slot(slots={"item_id": ITEM}), "needs a slot with visible_in_first"),
    (
        _missing_slot(assistant_milestones=[GET, ASK, DONE]),
        "not asked for and answered",
    ),
    (_missing_slot(user_simulator_turns=[]), "not asked for and answered"),
    (
        _missing_slot(user_simulator_turns=[answer("ask_for_slot", "That one.")]),
        "not asked for and answered",
    ),
    (_missing_slot(assistant_milestones=[ASK, DONE]), "missing_slot needs a tool_call"),
    (purchase(user_simulator_turns=[]), "confirmation needs an ask_confirm"),
    (
        purchase(assistant_milestones=[BUY, CONFIRM, DONE]),
        "confirmation needs a tool_call after",
    ),
    (_correction(user_simulator_turns=[answer("b", "Yes.")]), "with slot_updates"),
    (
        _correction({**CONFIRM, "id": "b"}, BUY, {**DONE, "id": "a"}, DONE),
        "after the corr",
    ),
    (_dependent(call_order="any"), "needs call_order: strict"),
    (template(turn_policy="dependent_call"), "at least one from_result"),
    (_dependent(turn_policy="multi_tool"), "only for turn_policy dependent_call"),
    (_correction(turn_policy="confirmation"), "only for turn_policy correction"),
    (
        template(turn_policy="clarify_only", assistant_milestones=[GET, ASK]),
        "no tool_call",
    ),
    (
        template(turn_policy="clarify_only", assistant_milestones=[DONE]),
        "ends with ask",
    ),
    (template(turn_policy="irrelevant"), "irrelevant makes no tool_call"),
    (
        template(turn_policy="irrelevant", assistant_milestones=[DONE]),
        "ends with decline",
    ),
    (template(turn_policy="odd"), "unknown turn policy"),
    (template(success_assertions=[]), "needs an assertion"),
]


@pytest.mark.parametrize(("made", "word"), BAD)
def test_other_shapes_are_refused(tmp_path, made, word):
    problems = problems_of(tmp_path, made)

    assert any(word in problem for problem in problems), problems


WRONG = [
    (template(assistant_milestones=[{**GET, "tool": "fly"}]), "no tool 'fly'"),
    (template(tools_present=["buy_item"]), "not in tools_present"),
    (template(tools_present=["fly"]), "no tool 'fly'"),
    (purchase(slots={"item_id": ITEM}), "required argument 'quantity'"),
    (
        template(assistant_milestones=[{**GET, "args": {"unit": "{size}"}}]),
        "placeholder {size} is no slot",
    ),
    (template(user_turn_templates={"en": "{item_id} {size}"}), "{size} is no slot"),
    (template(user_turn_templates={"en": "Show me."}), "is not in the first user turn"),
    (
        _missing_slot(user_turn_templates={"en": "Show {item_id}."}),
        "hidden, yet the first user turn",
    ),
    (template(user_turn_templates={"en": "get_item {item_id}"}), "names the tool"),
    (template(user_turn_templates={"de": "{item_id}"}), "no wording for language 'en'"),
    (template(call_order="prefix"), "needs call_order_prefix"),
    (template(call_order="prefix", call_order_prefix=2), "more than the 1 tools"),
    (template(call_order_prefix=1), "only with call_order: prefix"),
    (template(required_tools=["buy_item"]), "required_tools differs"),
    (template(success_assertions=["assert_none"]), "has no 'assert_none'"),
    (
        template(
            turn_policy="multi_tool",
            assistant_milestones=[
                {**GET, "call_group": 1},
                GET,
                {**GET, "call_group": 1},
            ],
        ),
        "interleaved",
    ),
    (
        _dependent(
            assistant_milestones=[
                {**GET, "id": "first", "call_group": 0},
                {
                    **GET,
                    "call_group": 0,
                    "args": {
                        "item_id": {"from_result": {"call": "first", "path": "a"}}
                    },
                },
            ]
        ),
        "not come in an earlier call group",
    ),
    (_dependent(path=""), "path of from_result is empty"),
    (
        _dependent(
            assistant_milestones=[
                GET,
                {
                    **GET,
                    "args": {"item_id": {"from_result": {"call": "no", "path": "a"}}},
                },
            ]
        ),
        "no tool_call has the id 'no'",
    ),
    (
        _dependent(
            assistant_milestones=[
                {**GET, "id": "first"},
                {**GET, "args": {"item_id": {"from_result": "first"}}},
            ]
        ),
        "exactly the texts call and path",
    ),
    (
        purchase(
            assistant_milestones=[
                CONFIRM,
                {**BUY, "args": {"confirm": "{item_id}"}},
            ]
        ),
        "stated as true or false",
    ),
    (
        purchase(
            user_simulator_turns=[
                answer("ask_confirm", "Yes."),
                answer("final_answer", "Bye."),
            ]
        ),
        "releases nothing",
    ),
    (purchase(user_simulator_turns=[answer("nowhere", "Yes.")]), "to answer"),
    (
        purchase(
            assistant_milestones=[{**CONFIRM, "id": "a"}, BUY, DONE],
            user_simulator_turns=[answer("a", "Yes."), answer("a", "Yes.")],
        ),
        "answered twice",
    ),
    (
        _correction(
            user_simulator_turns=[
                answer(
                    "a", "No.", slot_updates={"item_id": {"source": "literal:'I-1'"}}
                ),
                answer("b", "Yes."),
            ]
        ),
        "the same kind of source",
    ),
    (
        _correction(
            user_simulator_turns=[
                answer("a", "No.", slot_updates={"size": {"source": "literal:'I-1'"}}),
                answer("b", "Yes."),
            ]
        ),
        "no slot 'size'",
    ),
    (template(assistant_milestones=[GET, {"type": "wave"}]), "unknown milestone type"),
    (template(assistant_milestones=[GET, {**DONE, "tool": "x"}]), "unknown key 'tool'"),
    (
        template(assistant_milestones=[{**GET, "id": "x"}, {**DONE, "id": "x"}]),
        "repeats",
    ),
    (template(slots={"item_id": {"source": "literal:1"}}), "'visible_in_first_turn'"),
    (template(slots={"item_id": {**ITEM, "visible_in_first_turn": "yes"}}), "no bool"),
    (template(colour="red"), "unknown key 'colour'"),
    (template(template_id="a b"), "no safe token"),
]


@pytest.mark.parametrize(("made", "word"), WRONG)
def test_template_that_does_not_fit_its_pack_is_refused(tmp_path, made, word):
    problems = problems_of(tmp_path, made)

    assert any(word in problem for problem in problems), problems


def _confirmed(tmp_path, *milestones, turns):
    made = purchase(
        turn_policy="correction"
        if any("slot_updates" in t for t in turns)
        else "confirmation",
        assistant_milestones=list(milestones),
        user_simulator_turns=turns,
    )
    # Unearned confirmations are refused at loading, so the problems tell.
    unearned = [
        p for p in problems_of(tmp_path, made) if "no answered ask_confirm" in p
    ]
    if unearned:
        return len(unearned)
    pack = loaded(tmp_path, made)
    return confirmed_turns(
        pack.templates[0], pack.tools.by_name, pack.manifest.confirmation
    )


def test_answered_question_earns_the_next_confirmed_batch(tmp_path):
    group = {**BUY, "call_group": 0}

    found = _confirmed(
        tmp_path, CONFIRM, GET, group, group, turns=[answer("ask_confirm", "Yes.")]
    )

    assert found == ((2,), ())


def test_one_answer_earns_one_batch(tmp_path):
    found = _confirmed(
        tmp_path, CONFIRM, BUY, BUY, turns=[answer("ask_confirm", "Yes.")]
    )

    assert found == 1


def test_question_without_answer_earns_nothing(tmp_path):
    confirm = {**CONFIRM, "id": "late"}

    found = _confirmed(
        tmp_path, CONFIRM, BUY, confirm, BUY, turns=[answer("late", "Yes.")]
    )

    assert found == 1


def test_asking_for_a_slot_takes_the_answer_back(tmp_path):
    found = _confirmed(
        tmp_path, CONFIRM, ASK, BUY, turns=[answer("ask_confirm", "Yes.")]
    )

    assert found == 1


def test_correction_takes_the_answer_back(tmp_path):
    found = _confirmed(
        tmp_path,
        CONFIRM,
        {**DONE, "id": "pause"},
        BUY,
        turns=[
            answer("ask_confirm", "Yes."),
            answer("pause", "No, {item_id}.", slot_updates=UPDATE),
        ],
    )

    assert found == 1


def test_answer_that_corrects_does_not_confirm(tmp_path):
    found = _confirmed(
        tmp_path,
        CONFIRM,
        BUY,
        turns=[answer("ask_confirm", "Yes, but {item_id}.", slot_updates=UPDATE)],
    )

    assert found == 1


def test_unconfirmed_probe_needs_no_question(tmp_path):
    probe = {"type": "tool_call", "tool": "buy_item", "args": {"confirm": False}}

    found = _confirmed(
        tmp_path, probe, CONFIRM, BUY, turns=[answer("ask_confirm", "Yes.")]
    )

    assert found == ((2,), ())
