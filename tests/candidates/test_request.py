import json

import pytest

from harness.candidates.request import identified_request, prepare_request
from harness.canonical import canonical_bytes, content_hash, hash_bytes
from harness.errors import CandidateError, ConversationError
from tests.candidates.recording import TOOL, endpoint, prepared

MESSAGES = [{"role": "user", "content": "Zürich?"}]


def body_of(asked):
    return json.loads(prepared(asked).body)


def test_body_has_the_fields_of_the_contract_and_no_other():
    assert sorted(body_of(endpoint())) == [
        "max_tokens",
        "messages",
        "model",
        "seed",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    ]


def test_fields_that_the_config_leaves_out_are_not_sent():
    body = body_of(endpoint(inference={"top_p": None, "seed": None}))

    assert {"top_p", "seed"} & body.keys() == set()


def test_body_is_canonical_and_hashed_as_sent():
    request = prepared(endpoint(), messages=MESSAGES)

    assert request.body == canonical_bytes(json.loads(request.body))
    assert request.body_hash == hash_bytes(request.body)


def test_identity_is_the_hash_of_the_head_and_the_head_names_the_body():
    request = prepared(endpoint())

    assert request.request_hash == content_hash(request.head)
    assert request.head["request_body_hash"] == request.body_hash


def test_request_id_names_alias_task_trial_and_turn():
    request = prepare_request(
        endpoint(), task_id="t-1", trial=2, turn_index=3, messages=[], tools=[]
    )

    assert request.request_id == "under-test:t-1:2:3"


@pytest.mark.parametrize(
    "change",
    [
        {"alias": "other"},
        {"canonical_id": "other"},
        {"provider": "other"},
        {"provider_api_version": "v2"},
        {"base_url": "http://127.0.0.1:2/v1"},
        {"model": "other"},
        {"inference": {"seed": 43}},
    ],
)
def test_whatever_changes_the_meaning_changes_the_identity(change):
    changed = prepared(endpoint(**change)).request_hash

    assert changed != prepared(endpoint()).request_hash


def test_trial_and_turn_change_the_identity_and_not_the_body():
    def ask(trial, turn):
        return prepare_request(
            endpoint(),
            task_id="t",
            trial=trial,
            turn_index=turn,
            messages=MESSAGES,
            tools=[TOOL],
        )

    asked = [ask(0, 0), ask(1, 0), ask(0, 1)]
    assert len({r.request_hash for r in asked}) == 3
    assert len({r.body_hash for r in asked}) == 1


@pytest.mark.parametrize(
    "key",
    [
        "expected_tool_calls",
        "success_assertions",
        "fixture_refs",
        "oracle_results",
        "reference_trace",
    ],
)
def test_message_with_a_gold_column_is_refused(key):
    messages = [{"role": "user", "content": "x", key: []}]

    with pytest.raises(ConversationError) as caught:
        prepared(endpoint(), messages=messages)

    assert caught.value.code == "eval_conversation_answer_key_leak"


def test_candidate_cannot_stop_the_run_by_naming_a_gold_column():
    echoed = {"role": "assistant", "content": [{"type": "text", "fixture_refs": 1}]}

    assert prepared(endpoint(), messages=[echoed]).body


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(CandidateError) as caught:
        prepared(endpoint(), messages=[{"role": "user", "content": "\ud800"}])

    assert caught.value.code == "eval_candidate_request_invalid"


def test_extension_of_the_own_namespace_is_merged_into_the_body():
    asked = endpoint(inference={"provider_extensions": {"local.v1": {"top_k": 1}}})

    assert body_of(asked)["top_k"] == 1


@pytest.mark.parametrize(
    ("changes", "extensions"),
    [
        ({}, {"other.v1": {"top_k": 1}}),
        ({}, {"local.v1": {}, "other.v1": {}}),
        ({"provider_api_version": "2024-10"}, {"local.2024-10": {"top_k": 1}}),
        ({}, {"local.v1": [1]}),
        ({}, {"local.v1": {"temperature": 2}}),
        ({}, {"local.v1": {"seed": 2}}),
        ({}, {"local.v1": {"stream": True}}),
        ({}, {"local.v1": {"n": 2}}),
    ],
)
def test_extension_that_is_not_allowed_is_refused(changes, extensions):
    asked = endpoint(**changes, inference={"provider_extensions": extensions})

    with pytest.raises(CandidateError) as caught:
        prepared(asked)

    assert caught.value.code == "eval_candidate_provider_extension_invalid"


@pytest.mark.parametrize("routing", [None, ("X-Session-ID", 'a"b')])
def test_head_is_written_as_canonical_json(routing):
    asked = endpoint(model='m"\\', alias="Zürich\n")

    request = identified_request(
        asked, task_id='t"1', trial=7, turn_index=0, body=b"{}", routing=routing
    )

    assert request.head_bytes == canonical_bytes(request.head)
    assert request.request_hash == content_hash(request.head)
