"""What the controls declare is what the driver and the scorer find.

Every control holds every hand-built conversation over a real socket, in trace mode,
through the real candidate client.
"""

import itertools

import anyio
import pytest

from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES
from tests.candidates.control_episodes import failed_gates, hold_all, task_of
from tests.candidates.control_rows import ROWS

SEED = 7
TASKS = {published["task_id"]: task_of(published) for published in ROWS}


@pytest.fixture(scope="module")
def controls():
    return ControlCandidate(ROWS, seed=SEED)


@pytest.fixture(scope="module")
def episodes(controls):
    return anyio.run(hold_all, controls, CONTROL_NAMES, lambda _: TASKS.values())


@pytest.mark.slow
def test_untouched_episodes_complete_and_touched_ones_do_not(episodes, controls):
    completed = {key for key, e in episodes.items() if e.status == "completed"}

    assert completed == {
        (model, task_id)
        for model, task_id in itertools.product(CONTROL_NAMES, TASKS)
        if not controls.expectation(model, task_id, "trace").touched
    }


@pytest.mark.slow
def test_no_control_ends_as_another_partys_stop(episodes):
    assert {episode.status for episode in episodes.values()} == {
        "completed",
        "candidate_mismatch",
        "unusable_tool_call_ids",
    }


@pytest.mark.slow
@pytest.mark.parametrize("model", CONTROL_NAMES)
def test_scorer_fails_exactly_the_declared_gates(episodes, controls, model):
    found = {
        task_id: failed_gates(episodes[model, task_id], task)
        for task_id, task in TASKS.items()
    }

    assert found == {
        task_id: set(controls.expectation(model, task_id, "trace").failed)
        for task_id in TASKS
    }


@pytest.mark.slow
@pytest.mark.parametrize("model", CONTROL_NAMES)
def test_conversation_ends_at_the_declared_turn(episodes, controls, model):
    ended = {
        task_id: len(episodes[model, task_id].turns) - 1
        for task_id in TASKS
        if episodes[model, task_id].status != "completed"
    }

    assert ended == {
        task_id: expectation.mistake_turn
        for task_id in TASKS
        if (expectation := controls.expectation(model, task_id, "trace")).touched
    }
