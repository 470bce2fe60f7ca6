"""What a model is shown at each turn: earlier gold, and nothing of later rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ScoringError
from harness.run.teacher_forced.history import RowUse, read_taught
from tests.run.teacher_forced.conversations import (
    BASH_TOOL,
    CONVERSATIONS,
    bash,
    coding,
    row,
    write_dataset,
)

ALL = RowUse(reasoning=True, delays=True, overrides=True)


def taught(folder, rows, use=ALL):
    return read_taught(write_dataset(folder / "rows.jsonl", rows), use)


def shown(conversation, turn):
    return [json.loads(text) for text in conversation.messages[: turn.messages]]


def problems(folder, rows):
    with pytest.raises(ScoringError) as caught:
        taught(folder, rows)
    return [(v.where, v.problem) for v in caught.value.violations]


def test_history_is_the_recorded_one_up_to_the_asked_row(tmp_path):
    (conversation,) = taught(tmp_path, coding("repo"))

    turn = conversation.turns[1]
    assert (turn.client_turn, turn.assistant_turn) == (3, 4)
    assert conversation.system == "repo system"
    assert shown(conversation, turn) == [
        {"role": "user", "content": "repo task"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "repo thought 0",
            "tool_calls": [bash("grep repo-0 x", "c0")],
        },
        {"role": "tool", "tool_call_id": "c0", "content": "repo result 0"},
    ]


@given(steps=st.integers(1, 6), data=st.data())
def test_no_request_holds_a_word_of_a_later_row(tmp_path_factory, steps, data):
    rows = coding("repo", steps)
    (conversation,) = taught(tmp_path_factory.mktemp("rows"), rows)
    turn = data.draw(st.sampled_from(conversation.turns))

    text = b"".join(conversation.messages[: turn.messages]).decode()
    for later in rows[turn.client_turn :]:
        for words in (
            later.get("reasoning_content"),
            *(c["function"]["arguments"] for c in later.get("tool_calls", ())),
            *(r["content"] for r in later.get("tool_results", ())),
        ):
            assert words is None or json.dumps(words)[1:-1] not in text


def test_ground_truth_columns_are_never_shown(tmp_path):
    for conversation in taught(tmp_path, CONVERSATIONS):
        for message in conversation.messages:
            assert json.loads(message).keys() <= {
                *("role", "content", "tool_calls", "tool_call_id"),
                "reasoning_content",
            }


def test_recorded_reasoning_is_left_out_where_the_config_says_so(tmp_path):
    use = ALL._replace(reasoning=False)
    (conversation,) = taught(tmp_path, coding("repo"), use)

    assert not any(b"thought" in message for message in conversation.messages)


def test_tool_results_are_one_message_each(tmp_path):
    rows = coding("repo", 2)
    rows[2]["tool_results"].append({"tool_call_id": "c9", "content": {"rows": 2}})
    (conversation,) = taught(tmp_path, rows)

    assert shown(conversation, conversation.turns[1])[2:] == [
        {"role": "tool", "tool_call_id": "c0", "content": "repo result 0"},
        {"role": "tool", "tool_call_id": "c9", "content": '{"rows": 2}'},
    ]


def test_arguments_that_are_an_object_are_sent_as_text(tmp_path):
    rows = coding("repo", 2)
    rows[1]["tool_calls"][0]["function"]["arguments"] = {"command": "ls ü"}
    (conversation,) = taught(tmp_path, rows)

    (call,) = shown(conversation, conversation.turns[1])[1]["tool_calls"]
    assert call["function"]["arguments"] == '{"command": "ls ü"}'


def test_tools_come_from_the_first_row_where_a_row_has_none(tmp_path):
    other = {"type": "function", "function": {"name": "other"}}
    rows = coding("repo")
    rows[4]["tools"] = [other]
    (conversation,) = taught(tmp_path, rows)

    assert [turn.tools for turn in conversation.turns] == [
        (BASH_TOOL,),
        (BASH_TOOL,),
        (other,),
    ]


def test_client_row_without_a_recorded_answer_is_history_only(tmp_path):
    rows = [*coding("repo", 1)]
    rows += [
        row("repo", 3, "tool", tool_results=[{"tool_call_id": "c0", "content": "r"}]),
        row("repo", 4, "user", content="Thanks. More?"),
        row("repo", 5, "assistant", content="No."),
        row("repo", 6, "user", content="Bye."),
    ]
    (conversation,) = taught(tmp_path, rows)

    assert [turn.client_turn for turn in conversation.turns] == [1, 4]
    assert len(shown(conversation, conversation.turns[1])) == 4


def test_conversations_keep_the_order_of_the_file(tmp_path):
    names = [each.source_id for each in taught(tmp_path, CONVERSATIONS)]

    assert names == ["repo-a", "repo-b", "sim_1"]


def test_overrides_and_delays_of_a_row_are_read(tmp_path):
    rows = coding("repo")
    rows[2] |= {"temperature": 0.5, "max_new_tokens": 9, "model": "somebody-else"}
    (conversation,) = taught(tmp_path, rows)
    (plain,) = taught(tmp_path, rows, RowUse(True, delays=False, overrides=False))

    assert conversation.turns[1].overrides == {"temperature": 0.5, "max_tokens": 9}
    assert conversation.turns[1].delay_s == 0.5
    assert plain.turns[1].overrides == {}
    assert plain.turns[1].delay_s == 0.0


def test_everything_that_cannot_be_sent_is_named_at_once(tmp_path):
    rows = coding("repo")
    rows[0] |= {"tools": "bash", "system": 5}
    rows[2]["delay_seconds"] = -1
    rows[3]["reasoning_content"] = float("nan")
    rows[4]["temperature"] = "hot"

    found = problems(tmp_path, rows)

    assert [where for where, _ in found] == [
        f"rows.jsonl, repo, turn {turn}" for turn in (1, 1, 3, 4, 5)
    ]


def test_text_that_is_no_unicode_is_refused(tmp_path):
    rows = coding("repo")
    rows[0]["content"] = "\ud800"

    ((where, problem),) = problems(tmp_path, rows)

    assert where == "rows.jsonl, repo, turn 1"
    assert "UTF-8" in problem


def test_rows_that_the_contract_refuses_are_refused(tmp_path):
    rows = coding("repo")
    del rows[1]

    with pytest.raises(ScoringError):
        taught(tmp_path, rows)
