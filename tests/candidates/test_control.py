"""Controls answer as gold but for their mistake, and find tasks by what is visible."""

import json

import pytest

from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES
from harness.canonical import canonical_bytes, canonical_json
from harness.conversation.script import script_from_row
from harness.json_schema import compile_tools
from harness.strict_json import StrictJsonError, decode_object
from tests.candidates.control_rows import (
    CLARIFY,
    CONFIRMATION,
    DEPENDENT,
    FREE_GROUP,
    GROUP,
    MISSING_SLOT,
    PREFIX,
    PROBED_CONFIRMATION,
    ROWS,
    SINGLE,
    calls,
    request_at,
    row,
    say,
    user,
)


@pytest.fixture(scope="module")
def candidate():
    return ControlCandidate(ROWS)


def message(candidate, published, turn_index, model, **options):
    request = request_at(published, turn_index, model=model, **options)
    response = candidate.respond(model, request)
    assert response.status == 200, response.payload
    return response.payload["choices"][0]["message"]


def finish_reason(candidate, published, turn_index, model):
    response = candidate.respond(model, request_at(published, turn_index, model=model))
    return response.payload["choices"][0]["finish_reason"]


def made(said):
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in said.get("tool_calls", [])
    ]


def gold(published, turn_index):
    turn = script_from_row(published, "sha256:" + "0" * 64).turns[turn_index]
    return [(c.function_name, c.arguments) for c in turn.calls]


@pytest.mark.parametrize("published", ROWS, ids=lambda r: r["task_id"])
def test_gold_says_the_published_conversation(candidate, published):
    turns = script_from_row(published, "sha256:" + "0" * 64).turns
    said = [message(candidate, published, t.turn_index, "gold") for t in turns]

    assert [(made(s), s["content"]) for s in said] == [
        (
            [(c.function_name, c.arguments) for c in t.calls],
            t.expected_assistant_content,
        )
        for t in turns
    ]


@pytest.mark.parametrize("model", CONTROL_NAMES)
@pytest.mark.parametrize("published", ROWS, ids=lambda r: r["task_id"])
def test_control_is_gold_up_to_its_mistake(candidate, published, model):
    expectation = candidate.expectation(model, published["task_id"], "trace")
    turns = script_from_row(published, "sha256:" + "0" * 64).turns
    end = len(turns) if not expectation.touched else expectation.mistake_turn

    said = [message(candidate, published, index, model) for index in range(end)]

    assert [(made(s), s["content"]) for s in said] == [
        (gold(published, t.turn_index), t.expected_assistant_content)
        for t in turns[:end]
    ]


def test_silent_says_nothing(candidate):
    assert message(candidate, SINGLE, 0, "silent") == {
        "role": "assistant",
        "content": "",
    }


def test_words_talks_where_a_call_is_due(candidate):
    said = message(candidate, SINGLE, 0, "words")

    assert made(said) == []
    assert said["content"].strip()


def test_eager_calls_in_place_of_the_question(candidate):
    assert made(message(candidate, MISSING_SLOT, 0, "eager")) == [
        ("get_book", {"book_id": "BK-105"})
    ]


def test_wrong_argument_keeps_the_schema_and_changes_one_value(candidate):
    [(name, arguments)] = made(message(candidate, SINGLE, 0, "wrong-argument"))

    assert (name, arguments) == ("get_book", {"book_id": "BK-101"})


def test_wrong_argument_takes_another_enum_member_behind_a_reference():
    published = row(
        "enum",
        "single_turn",
        user("Poetry?"),
        calls(("find_books", {"shelf": "poetry"}, {"books": []})),
    )
    said = message(ControlCandidate([published]), published, 0, "wrong-argument")

    assert made(said) == [("find_books", {"shelf": "history"})]


def test_wrong_argument_leaves_a_defaulted_argument_for_last(candidate):
    [(_, arguments)] = made(message(candidate, DEPENDENT, 0, "wrong-argument"))

    assert arguments == {"shelf": "history", "limit": 1}


def test_wrong_argument_does_not_touch_the_confirmation(candidate):
    [(_, arguments)] = made(message(candidate, CONFIRMATION, 1, "wrong-argument"))

    assert arguments == {"book_id": "BK-107", "confirm": True}


def test_wrong_type_breaks_the_schema_of_every_row_with_arguments(candidate):
    valid = []
    for published in ROWS:
        expectation = candidate.expectation("wrong-type", published["task_id"], "trace")
        if not expectation.touched:
            continue
        said = message(candidate, published, expectation.mistake_turn, "wrong-type")
        catalog = compile_tools(published["tools"])
        if not any(catalog.failures(name, given) for name, given in made(said)):
            valid.append(published["task_id"])

    assert valid == []


def test_extra_call_repeats_the_first_call_under_another_id(candidate):
    said = message(candidate, SINGLE, 0, "extra-call")

    assert made(said) == gold(SINGLE, 0) * 2
    assert len({call["id"] for call in said["tool_calls"]}) == 2


def test_missing_call_leaves_one_out(candidate):
    assert made(message(candidate, GROUP, 0, "missing-call")) == gold(GROUP, 0)[:1]


def test_swapped_order_swaps_within_a_group(candidate):
    assert made(message(candidate, GROUP, 0, "swapped-order")) == gold(GROUP, 0)[::-1]


def test_swapped_order_swaps_turns_of_a_sequence(candidate):
    assert made(message(candidate, DEPENDENT, 0, "swapped-order")) == gold(DEPENDENT, 1)


def test_split_group_sends_the_rest_a_turn_later(candidate):
    first = message(candidate, GROUP, 0, "split-group")
    request = request_at(GROUP, 0, model="split-group")
    request["messages"] += [
        first,
        {
            "role": "tool",
            "tool_call_id": first["tool_calls"][0]["id"],
            "content": '{"status":"out"}',
        },
    ]
    second = candidate.respond("split-group", request).payload["choices"][0]["message"]

    assert [made(first), made(second)] == [gold(GROUP, 0)[:1], gold(GROUP, 0)[1:]]


def test_early_confirm_confirms_the_probe(candidate):
    assert made(message(candidate, PROBED_CONFIRMATION, 0, "early-confirm")) == [
        ("remove_book", {"book_id": "BK-107", "confirm": True})
    ]


def test_early_confirm_calls_in_place_of_the_question(candidate):
    assert made(message(candidate, CONFIRMATION, 0, "early-confirm")) == gold(
        CONFIRMATION, 1
    )


@pytest.mark.parametrize("task_id", ["single", "bare"])
def test_broken_json_is_no_json_but_ends_where_it_should(candidate, task_id):
    published = next(r for r in ROWS if r["task_id"] == task_id)
    said = message(candidate, published, 0, "broken-json")
    text = said["tool_calls"][0]["function"]["arguments"]

    with pytest.raises(StrictJsonError) as refused:
        decode_object(text)
    assert (refused.value.code, text[-1]) == ("invalid_json", "}")


def test_truncated_stops_for_length(candidate):
    assert finish_reason(candidate, SINGLE, 0, "truncated") == "length"


def test_duplicate_ids_repeats_the_id_within_the_message(candidate):
    said = message(candidate, PREFIX, 1, "duplicate-ids")

    assert made(said) == gold(PREFIX, 1)
    assert len({call["id"] for call in said["tool_calls"]}) == 1


def test_finish_reason_tells_calls_from_text(candidate):
    assert [finish_reason(candidate, SINGLE, i, "gold") for i in (0, 1)] == [
        "tool_calls",
        "stop",
    ]


def test_same_request_gets_the_same_bytes():
    request = request_at(SINGLE, 0)
    first, second = (ControlCandidate(ROWS).respond("gold", request) for _ in range(2))

    assert canonical_bytes(first.payload) == canonical_bytes(second.payload)


def test_order_of_the_rows_changes_nothing():
    request = request_at(MISSING_SLOT, 0, model="eager")
    forward, backward = (
        ControlCandidate(rows).respond("eager", request) for rows in (ROWS, ROWS[::-1])
    )

    assert forward == backward


def test_another_seed_gives_other_ids():
    request = request_at(SINGLE, 0)
    ids = {
        ControlCandidate(ROWS, seed=seed).respond("gold", request).payload["id"]
        for seed in (0, 1)
    }

    assert len(ids) == 2


def test_live_value_replaces_the_recorded_one(candidate):
    live = canonical_json({"books": [{"book_id": "BK-777"}]})

    assert made(message(candidate, DEPENDENT, 1, "gold", results={0: live})) == [
        ("lend_book", {"book_id": "BK-777", "reader": "Dan"})
    ]


def test_answer_with_a_live_value_is_recognised_later(candidate):
    live = canonical_json({"books": [{"book_id": "BK-777"}]})
    request = request_at(DEPENDENT, 1, results={0: live})
    said = candidate.respond("gold", request).payload["choices"][0]["message"]
    request["messages"] += [
        said,
        {
            "role": "tool",
            "tool_call_id": said["tool_calls"][0]["id"],
            "content": '{"status":"lent"}',
        },
    ]
    last = candidate.respond("gold", request).payload["choices"][0]["message"]

    assert last["content"] == "Lent to Dan."


def test_value_that_the_user_states_does_not_follow_a_result():
    published = row(
        "stated",
        "multi_tool",
        user("Look up BK-200 and lend it to Eve."),
        calls(("get_book", {"book_id": "BK-200"}, {"book_id": "BK-200"})),
        calls(("lend_book", {"book_id": "BK-200", "reader": "Eve"}, {"ok": 1})),
    )
    live = canonical_json({"book_id": "BK-201"})
    said = message(
        ControlCandidate([published]), published, 1, "gold", results={0: live}
    )

    assert made(said) == gold(published, 1)


def test_value_that_two_results_tell_differently_stays_gold():
    held = {"a": "BK-300", "b": "BK-300"}
    published = row(
        "ambiguous",
        "dependent_call",
        user("Lend the first travel book to Fay."),
        calls(("find_books", {"shelf": "travel"}, held)),
        calls(("lend_book", {"book_id": "BK-300", "reader": "Fay"}, {"ok": 1})),
    )
    live = canonical_json({"a": "BK-301", "b": "BK-302"})
    said = message(
        ControlCandidate([published]), published, 1, "gold", results={0: live}
    )

    assert made(said) == gold(published, 1)


def slot_variant(task_id, book):
    return row(
        task_id,
        "missing_slot",
        user("Look one up for me."),
        say("Which one?"),
        user(book),
        calls(("get_book", {"book_id": book}, {"status": "in"})),
        say(f"{book} is in."),
    )


def test_tasks_that_share_a_prefix_part_at_the_user_message():
    first, second = slot_variant("v1", "BK-401"), slot_variant("v2", "BK-402")
    candidate = ControlCandidate([first, second])

    assert [made(message(candidate, p, 1, "gold")) for p in (first, second)] == [
        [("get_book", {"book_id": "BK-401"})],
        [("get_book", {"book_id": "BK-402"})],
    ]


def test_mistake_is_made_where_a_shared_prefix_cannot_tell():
    asks = slot_variant("z-asks", "BK-403")
    stops = row(
        "a-stops", "clarify_only", user("Look one up for me."), say("Which one?")
    )
    candidate = ControlCandidate([stops, asks])
    expectation = candidate.expectation("eager", "a-stops", "trace")

    assert made(message(candidate, stops, 0, "eager"))
    assert expectation.touched


def test_other_words_for_the_same_step_do_not_lose_the_task():
    first, second = slot_variant("v1", "BK-404"), slot_variant("v2", "BK-405")
    second["messages"][2]["content"] = "Which book do you mean?"
    candidate = ControlCandidate([first, second])
    request = request_at(second, 1)
    request["messages"][2]["content"] = message(candidate, second, 0, "gold")["content"]

    response = candidate.respond("gold", request)

    assert made(response.payload["choices"][0]["message"]) == gold(second, 1)


def test_calls_in_another_free_order_do_not_lose_the_task(candidate):
    request = request_at(FREE_GROUP, 1)
    request["messages"][2]["tool_calls"].reverse()

    assert candidate.respond("gold", request).status == 200


def test_calls_in_another_strict_order_are_another_conversation(candidate):
    request = request_at(GROUP, 1)
    request["messages"][2]["tool_calls"].reverse()

    assert candidate.respond("gold", request).status == 400


def test_results_tell_tasks_apart_that_share_every_other_message():
    def variant(task_id, status, said):
        return row(
            task_id,
            "multi_tool",
            user("Look at BK-406 and act on it."),
            calls(("get_book", {"book_id": "BK-406"}, {"status": status})),
            calls(("find_books", {"shelf": said}, {"books": []})),
        )

    rows = [variant("a", "in", "travel"), variant("b", "out", "poetry")]
    candidate = ControlCandidate(rows)

    assert [made(message(candidate, published, 1, "gold")) for published in rows] == [
        gold(published, 1) for published in rows
    ]


def test_tools_tell_tasks_apart_that_share_every_message():
    narrow = {**SINGLE, "task_id": "narrow", "tools": SINGLE["tools"][:1]}
    other = row(
        "a-other",
        "single_turn",
        user("Is BK-100 in?"),
        calls(("find_books", {"shelf": "travel"}, {"books": []})),
    )
    candidate = ControlCandidate([narrow, other])

    assert made(message(candidate, narrow, 0, "gold")) == gold(SINGLE, 0)


def test_text_parts_are_read_as_text(candidate):
    request = request_at(SINGLE, 0)
    request["messages"][1]["content"] = [
        {"type": "text", "text": "Is BK-100 "},
        {"type": "text", "text": "in?"},
    ]

    assert candidate.respond("gold", request).status == 200


def test_request_after_the_last_answer_gets_a_closing_text(candidate):
    request = request_at(CLARIFY, 1)
    request["messages"].append({"role": "user", "content": "BK-1"})

    assert candidate.respond("gold", request).status == 400

    request["messages"].pop()

    assert (
        candidate.respond("gold", request)
        .payload["choices"][0]["message"]["content"]
        .startswith("That is all")
    )


def test_unknown_model_is_refused_by_name(candidate):
    response = candidate.respond("gpt", request_at(SINGLE, 0))

    assert (response.status, response.payload["error"]["code"]) == (
        404,
        "model_not_found",
    )


def test_foreign_conversation_is_refused(candidate):
    request = {"messages": [{"role": "user", "content": "Hello?"}]}
    response = candidate.respond("gold", request)

    assert (response.status, response.payload["error"]["code"]) == (
        400,
        "unknown_conversation",
    )


def test_answer_that_the_control_never_gave_is_refused(candidate):
    request = request_at(SINGLE, 1)
    request["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{}"

    assert candidate.respond("gold", request).status == 400


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        (None, "messages"),
        ([], "messages"),
        ("hello", "messages"),
        ([{"role": "system", "content": "x"}], "messages"),
        (["hello"], "messages[0]"),
        ([{"role": "robot", "content": "x"}], "messages[0]"),
        ([{"role": "user", "content": 3}], "messages[0]"),
        ([{"role": "tool", "tool_call_id": "a", "content": "x"}], "messages[0]"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "tool_calls": ["call"]},
            ],
            "messages[1]",
        ),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": "y"},
                {"role": "tool", "content": "z"},
            ],
            "messages[2]",
        ),
    ],
)
def test_unreadable_messages_are_refused_with_their_place(candidate, messages, where):
    response = candidate.respond("gold", {"messages": messages})

    assert (response.status, response.payload["error"]["param"]) == (400, where)


def test_models_are_the_fifteen_controls(candidate):
    assert [m["id"] for m in candidate.models["data"]] == list(CONTROL_NAMES)
