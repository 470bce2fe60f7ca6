"""A row reads as turns by one rule, and a row that contradicts itself is refused."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import canonical_json
from harness.conversation.script import ConversationScript, script_from_row
from harness.errors import ConversationError

SOURCE = "sha256:" + "0" * 64


def user(text):
    return {"role": "user", "content": text}


def system(text):
    return {"role": "system", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def result(call_id, value):
    return {"role": "tool", "tool_call_id": call_id, "content": canonical_json(value)}


class RowBuilder:
    """Builds a published row the way a publication does: messages and gold agree."""

    def __init__(self, *seed):
        self.messages = list(seed)
        self.gold = []
        self.turns = 0
        self.groups = 0

    def user(self, text):
        self.messages.append(user(text))
        return self

    def says(self, text):
        self.messages.append(said(text))
        self.turns += 1
        return self

    def calls(self, *calls):
        ids = [f"call_{len(self.gold) + i}" for i in range(len(calls))]
        self.messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": call_id,
                        "type": "function",
                        "function": {
                            "name": name,
                            "arguments": canonical_json(arguments),
                        },
                    }
                    for call_id, (name, arguments) in zip(ids, calls, strict=True)
                ],
            }
        )
        for position, (name, arguments) in enumerate(calls):
            self.gold.append(
                {
                    "turn_index": self.turns,
                    "call_group": self.groups,
                    "position_in_group": position,
                    "function_name": name,
                    "arguments": {k: canonical_json(v) for k, v in arguments.items()},
                }
            )
        self.messages += [result(call_id, {"of": call_id}) for call_id in ids]
        self.turns += 1
        self.groups += 1
        return self

    def row(self):
        return {
            "task_id": "library__loan__0001",
            "messages": copy.deepcopy(self.messages),
            "tools": [{"type": "function", "function": {"name": "find"}}],
            "expected_tool_calls": copy.deepcopy(self.gold),
            "required_tools": ["find"],
            "call_order": "strict",
            "call_order_prefix": None,
        }


def loan():
    """One task with every kind of turn."""
    return (
        RowBuilder(system("Library desk."), user("I want a book."))
        .says("Which one?")
        .user("BK-100, and tell me about BK-200.")
        .calls(("find", {"book": "BK-100"}), ("find", {"book": "BK-200"}))
        .says("Shall I lend it?")
        .user("Yes.")
        .calls(("lend", {"book": "BK-100", "confirm": True}))
        .says("Done.")
    )


def refusal_of(row):
    with pytest.raises(ConversationError) as caught:
        script_from_row(row, SOURCE)
    (violation,) = caught.value.violations
    assert violation.code == "eval_conversation_script_invalid"
    return violation


def test_seed_is_the_system_messages_and_the_first_user_message():
    row = RowBuilder(system("A"), system("B"), user("Hello")).says("Hi").row()

    script = script_from_row(row, SOURCE)

    assert script.seed_messages == (system("A"), system("B"), user("Hello"))


def test_seed_needs_no_system_message():
    script = script_from_row(RowBuilder(user("Hello")).says("Hi").row(), SOURCE)

    assert script.seed_messages == (user("Hello"),)


def test_every_assistant_message_is_one_turn():
    script = script_from_row(loan().row(), SOURCE)

    assert [turn.expects_calls for turn in script.turns] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert [turn.turn_index for turn in script.turns] == [0, 1, 2, 3, 4]
    assert [turn.call_group for turn in script.turns] == [None, 0, None, 1, None]


def test_user_message_is_released_by_the_turn_before_it():
    script = script_from_row(loan().row(), SOURCE)

    assert [turn.releases_user_message for turn in script.turns] == [
        "BK-100, and tell me about BK-200.",
        None,
        "Yes.",
        None,
        None,
    ]
    assert [turn.user_turn_index for turn in script.turns] == [0, 1, 1, 2, 2]


def test_only_the_last_turn_is_terminal():
    script = script_from_row(loan().row(), SOURCE)

    assert [turn.is_terminal for turn in script.turns] == [False] * 4 + [True]


def test_calls_are_numbered_over_the_task_and_within_their_group():
    script = script_from_row(loan().row(), SOURCE)

    assert [
        (call.call_index, call.position_in_group, call.function_name)
        for call in script.gold_calls
    ] == [(0, 0, "find"), (1, 1, "find"), (2, 0, "lend")]


def test_arguments_are_decoded_and_results_stay_text():
    call = script_from_row(loan().row(), SOURCE).gold_calls[2]

    assert call.arguments == {"book": "BK-100", "confirm": True}
    assert call.recorded_result == '{"of":"call_2"}'


def test_script_may_end_with_calls():
    row = RowBuilder(user("Find it.")).calls(("find", {})).row()

    (turn,) = script_from_row(row, SOURCE).turns

    assert turn.is_terminal
    assert turn.expects_calls


def test_script_carries_what_the_row_says_of_order_and_tools():
    row = loan().row() | {"call_order": "prefix", "call_order_prefix": 1}

    script = script_from_row(row, SOURCE)

    assert (script.call_order, script.call_order_prefix) == ("prefix", 1)
    assert script.required_tools == ("find",)
    assert script.user_turns[0] == "I want a book."
    assert script.source_verification_identity == SOURCE


def test_script_survives_its_own_record():
    script = script_from_row(loan().row(), SOURCE)
    text = canonical_json(script.semantic_payload())

    assert ConversationScript.from_payload(json.loads(text)) == script


def test_no_user_message_is_refused():
    row = RowBuilder(system("A")).row()

    assert refusal_of(row).expected == "system messages and then a user message"


def test_assistant_before_the_user_is_refused():
    row = RowBuilder(system("A"), said("Hi"), user("Hello")).says("Hi").row()

    assert refusal_of(row).expected == "system messages and then a user message"


def test_no_assistant_message_is_refused():
    violation = refusal_of(RowBuilder(user("Hello")).row())

    assert violation.expected == "at least one assistant message"
    assert violation.actual == "the end of the conversation"


def test_user_message_at_the_end_is_refused():
    row = RowBuilder(user("Hello")).says("Hi").user("Bye").row()

    assert refusal_of(row).expected == "an assistant message after the last user"


def test_two_user_messages_in_a_row_are_refused():
    row = RowBuilder(user("Hello")).says("Hi").user("a").user("b").says("c").row()

    violation = refusal_of(row)

    assert violation.expected == "an assistant message"
    assert violation.where == "task library__loan__0001, messages[3]"


@pytest.mark.parametrize("content", [None, "", "  \n", ["text"]])
def test_assistant_without_words_and_calls_is_refused(content):
    row = RowBuilder(user("Hello")).says(content).row()

    assert refusal_of(row).expected == "an assistant message with text or calls"


def test_missing_tool_message_is_refused():
    row = loan().row()
    del row["messages"][6]

    assert refusal_of(row).expected == "the tool message of call call_1"


def test_tool_message_at_the_very_end_is_missed_too():
    row = RowBuilder(user("Find it.")).calls(("find", {})).row()
    row["messages"].pop()

    assert refusal_of(row).expected == "the tool message of call call_0"


def test_swapped_tool_messages_are_refused():
    row = loan().row()
    row["messages"][5:7] = reversed(row["messages"][5:7])

    assert refusal_of(row).expected == "the tool message of call call_0"


def test_stray_tool_message_is_refused():
    row = RowBuilder(user("Hello")).says("Hi").row()
    row["messages"].append(result("call_0", {}))

    assert refusal_of(row).expected == "an assistant message"


@pytest.mark.parametrize("text", ["", "[]", '{"book":NaN}', '{"a":1,"a":1}', "{"])
def test_arguments_that_are_no_strict_object_are_refused(text):
    row = loan().row()
    row["messages"][4]["tool_calls"][0]["function"]["arguments"] = text

    violation = refusal_of(row)

    assert violation.expected.startswith("arguments as a strict JSON object")
    assert violation.where == "task library__loan__0001, messages[4]"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("turn_index", 2),
        ("call_group", 1),
        ("position_in_group", 1),
        ("function_name", "lend"),
        ("arguments", {"book": '"BK-101"'}),
        ("arguments", {}),
        ("arguments", {"book": '"BK-100"', "more": "1"}),
    ],
)
def test_gold_that_disagrees_with_its_message_is_refused(field, value):
    row = loan().row()
    row["expected_tool_calls"][0][field] = value

    assert refusal_of(row).expected == "the call of expected_tool_calls[0]"


def test_gold_of_another_json_type_is_refused():
    row = RowBuilder(user("Find it.")).calls(("find", {"n": 1})).row()
    row["expected_tool_calls"][0]["arguments"]["n"] = "1.0"

    assert refusal_of(row).expected == "the call of expected_tool_calls[0]"


def test_message_call_without_gold_is_refused():
    row = loan().row()
    row["expected_tool_calls"].pop()

    assert refusal_of(row).expected == "the call of expected_tool_calls[2]"


def test_gold_call_without_a_message_is_refused():
    row = loan().row()
    row["expected_tool_calls"].append(row["expected_tool_calls"][-1])

    assert refusal_of(row).expected == "4 calls as in expected_tool_calls"


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.booleans(),
        st.dictionaries(st.sampled_from("abc"), st.integers() | st.booleans()),
    ),
    min_size=1,
    max_size=6,
)


@given(STEPS)
def test_any_published_conversation_reads_back(steps):
    builder = RowBuilder(system("S"), user("u0"))
    for position, (size, releases, arguments) in enumerate(steps):
        if size:
            builder.calls(*[("find", arguments)] * size)
        else:
            builder.says(f"t{position}")
        if releases and position + 1 < len(steps):
            builder.user(f"u{position + 1}")

    script = script_from_row(builder.row(), SOURCE)

    assert [len(turn.calls) for turn in script.turns] == [step[0] for step in steps]
    assert [turn.releases_user_message is not None for turn in script.turns] == [
        step[1] for step in steps[:-1]
    ] + [False]
    assert [call.call_index for call in script.gold_calls] == list(
        range(sum(step[0] for step in steps))
    )
    assert sum(turn.is_terminal for turn in script.turns) == 1


@given(st.integers(0, 11), st.sampled_from(["drop", "repeat"]))
def test_any_dropped_or_repeated_message_is_refused_or_changes_the_script(
    position, change
):
    row = loan().row()
    messages = row["messages"]
    before = script_from_row(loan().row(), SOURCE)
    position %= len(messages)
    if change == "drop":
        del messages[position]
    else:
        messages.insert(position, copy.deepcopy(messages[position]))

    try:
        after = script_from_row(row, SOURCE)
    except ConversationError:
        return

    assert after.identity_hash() != before.identity_hash()
