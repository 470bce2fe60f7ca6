"""All fifteen controls on the bank: real sockets, real workers, declared verdicts.

Every day one task of each template in both modes; in the slow suite all tasks, live,
and the mixture's in trace mode too, for it makes every mistake somewhere.
"""

from functools import partial

import anyio
import pytest

from harness.benchmark.projection import project_task
from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES
from tests.candidates.control_episodes import (
    NO_HASH,
    hold_all,
    score,
    script_of,
    task_of,
)
from tests.packs.conftest import open_host

MODES = ("trace", "executable")


@pytest.fixture(scope="module")
def controls(rows):
    return ControlCandidate(rows, seed=3)


def held(bank, controls, rows, mode, models=CONTROL_NAMES):
    """Hold the controls' episodes on each row; return (tasks, episodes)."""
    tasks = {
        row["task_id"]: task_of(
            row,
            project_task(bank, row, script_of(row), NO_HASH)
            if mode == "executable"
            else None,
        )
        for row in rows
    }
    hold = partial(hold_all, controls, models, lambda _: tasks.values())

    async def live():
        async with open_host(bank) as host:
            return await hold(host)

    return tasks, anyio.run(live if mode == "executable" else hold)


def disagreements(controls, tasks, episodes, mode):
    """Return where a score is not what the control declares of the task."""
    found = {}
    for (model, task_id), episode in episodes.items():
        expected = controls.expectation(model, task_id, mode)
        scored = score(episode, tasks[task_id])
        failed = {gate.gate for gate in scored.gates if gate.outcome == "failed"}
        verdict = (failed - expected.open, scored.task_success)
        declared = (set(expected.failed - expected.open), not expected.touched)
        if verdict != declared or scored.non_candidate_stop:
            found[model, task_id] = (episode.status, verdict, declared)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_one_task_of_each_template_is_scored_as_declared(
    bank, controls, first_rows, mode
):
    tasks, episodes = held(bank, controls, first_rows, mode)

    assert len(episodes) == len(CONTROL_NAMES) * len(first_rows)
    assert disagreements(controls, tasks, episodes, mode) == {}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_task_is_scored_as_declared(bank, controls, rows):
    tasks, episodes = held(bank, controls, rows, "executable")

    assert len(episodes) == len(CONTROL_NAMES) * len(rows)
    assert disagreements(controls, tasks, episodes, "executable") == {}


@pytest.mark.slow
def test_every_task_is_scored_as_declared_from_its_trace(bank, controls, rows):
    tasks, episodes = held(bank, controls, rows, "trace", ["gold", "mixture"])

    assert len(episodes) == 2 * len(rows)
    assert disagreements(controls, tasks, episodes, "trace") == {}


@pytest.mark.parametrize("model", [name for name in CONTROL_NAMES if name != "gold"])
def test_every_mistake_has_tasks_that_it_touches(controls, model):
    touched = {
        controls.expectation(model, task_id, "trace").touched
        for task_id in controls.tasks
    }

    assert True in touched


def test_gold_alone_is_left_alone_everywhere(controls):
    spared = {
        model
        for model in CONTROL_NAMES
        if not any(
            controls.expectation(model, task_id, "trace").touched
            for task_id in controls.tasks
        )
    }

    assert spared == {"gold"}
