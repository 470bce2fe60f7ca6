"""Whatever a candidate writes becomes a line that the contract reads and scores."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from harness.candidates.attempts import attempt_of, response_of
from harness.candidates.credential import Credential
from harness.candidates.delivered import Delivered
from harness.candidates.wire import classify
from harness.run.teacher_forced.answers import answer_score, output_data
from harness.scoring.mlperf_agentic.actions import bash_actions
from harness.scoring.mlperf_agentic.conversation_ids import Domain
from harness.scoring.mlperf_agentic.events import read_event
from harness.scoring.mlperf_agentic.model_output import finished_calls
from harness.scoring.mlperf_agentic.turns import Answer, Truth, turn_score
from harness.scoring.mlperf_agentic.workflow import model_intent

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
TRUTHS = (
    Truth(Domain.CODING, ("grep", "ls")),
    Truth(Domain.WORKFLOW, ("I001",)),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["bash", "intent: I001", '{"command": "ls"}', "\ud800"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["index", "id", "type", "function", "name", "arguments"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {"id": SCALARS, "function": JSON | st.just({"name": "bash", "arguments": "{}"})}
    )
    | JSON,
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "content": JSON,
        "tool_calls": CALLS | JSON,
        "reasoning_content": JSON,
        "reasoning": JSON,
        "refusal": JSON,
        "function_call": JSON,
    },
)


def received(message, finish_reason="stop"):
    """Return the recorded completion of a message as a server would send it."""
    choice = {"message": message, "finish_reason": finish_reason}
    body = json.dumps({"choices": [choice]}).encode("utf-8", "surrogatepass")
    delivery = Delivered(200, {}, body)
    found = classify(200, {}, body, now=NOON, echo_reasoning=True)
    attempt = attempt_of(0, NOON, 0.1, found, delivery, Credential(None))
    return response_of(found, attempt, delivery)


def read_back(response):
    line = json.dumps(
        {
            "event_type": "sample.complete",
            "sample_uuid": "u",
            "conversation_id": "c",
            "turn": 1,
            "data": output_data(response),
        },
        ensure_ascii=False,
    )
    return read_event(line.encode("utf-8").decode("utf-8")).output


def contributed(output):
    """What the scorer takes from an answer that it read from the log."""
    actions = bash_actions(finished_calls(output.tool_calls).calls)
    return Answer(actions, model_intent(output.reasoning, output.content))


@given(message=MESSAGES, reason=st.sampled_from(["stop", "length", "content_filter"]))
def test_any_message_is_a_readable_line_with_the_same_score(message, reason):
    response = received(message, reason)
    output = read_back(response)

    assert output is not None
    for truth in TRUTHS:
        expected = turn_score(truth, contributed(output))
        assert answer_score(truth, response) == expected


def test_calls_that_cannot_all_be_read_are_passed_on_as_they_came():
    good = {"function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    response = received({"tool_calls": ["junk", good, {"function": 5}]})

    assert output_data(response)[3] == ["junk", good, {"function": 5}]
    assert answer_score(Truth(Domain.CODING, ("ls",)), response) == 1.0


def test_reasoning_is_found_under_both_of_its_names():
    for key in ("reasoning_content", "reasoning"):
        assert output_data(received({"content": "x", key: "thought"}))[2] == "thought"


def test_completion_without_a_message_is_an_empty_answer():
    assert output_data(None) == ["TextModelOutput", "", None, None]
