"""The prompt: three ways in, one audited way out."""

import pytest

from harness.conversation.prompt import Prompt
from harness.conversation.release import Release, ReleasedResult
from harness.conversation.script import (
    ConversationScript,
    ScriptedCall,
    ScriptedTurn,
)
from harness.errors import ConversationError
from harness.evidence.episode import CandidateResponse, ToolCall


def seed() -> tuple[dict[str, object], ...]:
    return (
        {"role": "system", "content": "Library desk."},
        {"role": "user", "content": "Is BK-1 in?"},
    )


def script() -> ConversationScript:
    call = ScriptedCall(0, 0, "get_book_status", {"book_id": "BK-1"}, '{"in":true}')
    return ConversationScript(
        schema_version="1.0",
        task_id="task",
        source_verification_identity="source",
        seed_messages=seed(),
        tools=(),
        turns=(
            ScriptedTurn(0, 0, 0, (call,), None, "And BK-2?", is_terminal=False),
            ScriptedTurn(1, 1, None, (), "No.", None, is_terminal=True),
        ),
        user_turns=("Is BK-1 in?", "And BK-2?"),
        required_tools=("get_book_status",),
        call_order="strict",
        call_order_prefix=None,
    )


def response(call_id: str = "call_1") -> CandidateResponse:
    raw = '{"book_id":"BK-1"}'
    return CandidateResponse(
        provider_response_id=None,
        provider_request_id=None,
        served_model=None,
        server=None,
        message={
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": "get_book_status", "arguments": raw},
                }
            ],
        },
        text="",
        tool_calls=(
            ToolCall(
                0,
                call_id,
                "function",
                "get_book_status",
                raw,
                {"book_id": "BK-1"},
                "valid_object",
                None,
            ),
        ),
        finish_reason="tool_calls",
        usage=None,
        selected_attempt=0,
        raw_response_hash="sha256:" + "0" * 64,
    )


def release(call_id: str = "call_1", user_message: str | None = "And BK-2?") -> Release:
    return Release(
        0, "recorded_result", (ReleasedResult(call_id, '{"in":true}'),), user_message
    )


def test_new_prompt_is_the_seed_and_nothing_else() -> None:
    messages = Prompt(script()).audited_messages()

    assert messages == list(seed())


def test_candidate_turn_is_echoed_as_it_came() -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response())
    prompt.add_release(release())

    messages = prompt.audited_messages()

    assert messages[2] == response().message


def test_results_are_addressed_to_the_candidates_own_call() -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response("mine"))
    prompt.add_release(release("mine"))

    messages = prompt.audited_messages()

    assert messages[3] == {
        "role": "tool",
        "tool_call_id": "mine",
        "content": '{"in":true}',
    }
    assert messages[4] == {"role": "user", "content": "And BK-2?"}


@pytest.mark.parametrize(
    "smuggled",
    [
        release("somebody-elses"),
        release(user_message="Call checkout_book now."),
        release(user_message=None),
        Release(0, "recorded_result", (), "And BK-2?"),
    ],
    ids=["foreign id", "unscripted user", "withheld user", "withheld result"],
)
def test_release_that_the_script_does_not_account_for_is_never_sent(
    smuggled: Release,
) -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response())
    prompt.add_release(smuggled)

    with pytest.raises(ConversationError) as caught:
        prompt.audited_messages()

    assert caught.value.code == "eval_conversation_answer_key_leak"


def test_message_slipped_past_the_doors_is_found_by_the_audit() -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response())
    prompt.add_release(release())
    prompt._entries.append(prompt._entries[-1])

    with pytest.raises(ConversationError) as caught:
        prompt.audited_messages()

    assert caught.value.code == "eval_conversation_answer_key_leak"


@pytest.mark.parametrize("position", [3, 4], ids=["result", "scripted user"])
def test_message_changed_after_its_release_is_found_by_the_audit(
    position: int,
) -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response())
    prompt.add_release(release())
    prompt.audited_messages()[position]["content"] = "Call checkout_book now."

    with pytest.raises(ConversationError, match=rf"messages\[{position}\]"):
        prompt.audited_messages()


def test_seed_message_with_a_gold_key_is_refused() -> None:
    leaking = script()
    leaking.seed_messages[1]["expected_tool_calls"] = []

    with pytest.raises(ConversationError) as caught:
        Prompt(leaking).audited_messages()

    assert caught.value.code == "eval_conversation_answer_key_leak"


def test_release_before_the_response_is_refused() -> None:
    with pytest.raises(ConversationError) as caught:
        Prompt(script()).add_release(release())

    assert caught.value.code == "eval_conversation_transition_invalid"


def test_second_release_of_a_turn_is_refused() -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response())
    prompt.add_release(release())

    with pytest.raises(ConversationError):
        prompt.add_release(release())


def test_prompt_that_ends_with_the_candidate_is_not_sent() -> None:
    prompt = Prompt(script())
    prompt.add_candidate_turn(0, response())

    with pytest.raises(ConversationError) as caught:
        prompt.audited_messages()

    assert caught.value.code == "eval_conversation_transition_invalid"
