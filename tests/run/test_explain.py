"""One episode as a person reads it, from the evidence of a real run."""

from itertools import pairwise

import pytest

from harness.errors import UsageError
from harness.report.episode import render_episode
from harness.run.explain import explain_episode
from harness.run.sensitivity import sensitivity_of


@pytest.fixture(scope="module")
def extra_task(bent):
    """A task whose first call the bent candidate got wrong."""
    flips = sensitivity_of(bent.output("executable"))["flips"]
    return next(f for f in flips if f["policy"] == "extra-arguments")["task_id"]


def explained(bent, task_id, candidate, name="executable"):
    return explain_episode(bent.output(name), task_id, candidate=candidate, trial=0)


def test_divergence_is_the_one_argument_too_many(bent, extra_task):
    payload = explained(bent, extra_task, "extras")

    diff = payload["divergence"]["diff"]
    assert [line for line in diff if line[0] in "+-"] == ['+ note: "please"']
    assert payload["blame"]["owner"] == "candidate"


def test_success_has_no_divergence_and_nobody_to_blame(bent, extra_task):
    payload = explained(bent, extra_task, "chatty")

    assert payload["verdict"] == "success"
    assert payload["divergence"] is None
    assert payload["blame"]["owner"] == "nobody"


def test_each_message_is_shown_as_sent_once(bent, extra_task):
    payload = explained(bent, extra_task, "chatty")

    turns = payload["turns"]
    for before, after in pairwise(turns):
        assert after["sent"] == before["released"]
        assert after["messages_before"] == (
            before["messages_before"] + len(before["sent"]) + 1
        )
    assert [m["role"] for m in turns[0]["sent"]][-1] == "user"


def test_executions_stand_with_their_turn(bent, extra_task):
    payload = explained(bent, extra_task, "chatty")

    ran = [
        (execution["function_name"], call["function_name"])
        for turn in payload["turns"]
        for execution, call in zip(
            turn["executions"], turn["answer"]["tool_calls"], strict=True
        )
    ]
    assert ran
    assert all(name == called for name, called in ran)


def test_text_holds_the_sections_in_reading_order(bent, extra_task):
    text = render_episode(explained(bent, extra_task, "extras"))

    heads = ["Task ", "Turn 0", "  sent", "  came back", "  released: nothing"]
    heads += ["Never asked", "What each gate saw", "First divergence", "To blame"]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_first_candidate_of_the_plan_is_shown_by_default(bent, extra_task):
    payload = explained(bent, extra_task, None)

    assert payload["candidate_alias"] == "chatty"
    assert payload["other_candidates"] == ["extras"]


def test_beginning_of_an_id_takes_the_first_such_task(bent, extra_task):
    payload = explained(bent, extra_task.partition("-")[0], "extras")

    assert payload["task_id"].startswith(extra_task.partition("-")[0])


def test_retried_request_shows_every_attempt(bent):
    flips = sensitivity_of(bent.output("trace"))["flips"]
    task_id = next(f for f in flips if f["policy"] == "strict-002")["task_id"]

    text = render_episode(explained(bent, task_id, "stutters", name="trace"))

    assert text.count("attempt: HTTP 200") == 2
    assert "envelope_malformed" in text


@pytest.mark.parametrize(
    ("task_id", "candidate", "trial"),
    [("no-such-task", None, 0), ("", None, 0), (None, "nobody", 0), (None, None, 7)],
)
def test_episode_that_was_not_planned_is_a_usage_error(
    bent, extra_task, task_id, candidate, trial
):
    with pytest.raises(UsageError):
        explain_episode(
            bent.output("executable"),
            extra_task if task_id is None else task_id,
            candidate=candidate,
            trial=trial,
        )
