"""All fifteen controls on the bank: real sockets, real workers, declared verdicts.

Every day one task of each template in both modes. In the slow suite every control on
every task: live where its mistake touches the task and for gold, from the trace where
a control does as gold does, for live that would be gold's episode once more.
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


@pytest.fixture(scope="module")
def tasks(bank, rows):
    """Every task in both modes: (mode, task id) to the task."""
    return {
        (mode, row["task_id"]): task_of(
            row,
            project_task(bank, row, script_of(row), NO_HASH)
            if mode == "executable"
            else None,
        )
        for mode in MODES
        for row in rows
    }


def held(bank, controls, tasks, mode, chosen):
    """Hold each control's episode on the task ids that `chosen` gives for it."""
    hold = partial(
        hold_all,
        controls,
        CONTROL_NAMES,
        lambda model: [tasks[mode, task_id] for task_id in chosen(model)],
    )

    async def live():
        async with open_host(bank) as host:
            return await hold(host)

    return anyio.run(live if mode == "executable" else hold)


def disagreements(controls, tasks, episodes, mode):
    """Return where a score is not what the control declares of the task."""
    found = {}
    for (model, task_id), episode in episodes.items():
        expected = controls.expectation(model, task_id, mode)
        scored = score(episode, tasks[mode, task_id])
        failed = {gate.gate for gate in scored.gates if gate.outcome == "failed"}
        verdict = (failed - expected.open, scored.task_success)
        declared = (set(expected.failed - expected.open), not expected.touched)
        if verdict != declared or scored.non_candidate_stop:
            found[model, task_id] = (episode.status, verdict, declared)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_one_task_of_each_template_is_scored_as_declared(
    bank, controls, tasks, first_rows, mode
):
    chosen = [row["task_id"] for row in first_rows]
    episodes = held(bank, controls, tasks, mode, lambda _: chosen)

    assert len(episodes) == len(CONTROL_NAMES) * len(chosen)
    assert disagreements(controls, tasks, episodes, mode) == {}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_task_is_scored_as_declared(bank, controls, tasks):
    def runs_live(model, task_id):
        touched = controls.expectation(model, task_id, "executable").touched
        return touched or model == "gold"

    episodes = 0
    for mode in MODES:
        part = held(
            bank,
            controls,
            tasks,
            mode,
            lambda model, live=mode == "executable": [
                task_id
                for task_id in controls.tasks
                if runs_live(model, task_id) == live
            ],
        )
        episodes += len(part)

        assert disagreements(controls, tasks, part, mode) == {}
    assert episodes == len(CONTROL_NAMES) * len(controls.tasks)


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
