"""The controls on the bundled library, published and executed for real."""

from functools import partial

import anyio
import pytest

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.commit_marker import PUBLISHED_FILE
from harness.benchmark.pack import load_pack
from harness.benchmark.projection import project_task
from harness.benchmark.publication import publish, read_rows
from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES
from harness.oracle.certifying import CertifyingOracle
from harness.oracle.contracts import WorkerDeadlines, WorkerLimits
from harness.oracle.host import OracleHost
from tests.candidates.control_episodes import (
    NO_HASH,
    failed_gates,
    hold_all,
    script_of,
    task_of,
)

SEED = 5


@pytest.fixture(scope="module")
def pack():
    return load_pack(resolve_pack("library"))


@pytest.fixture(scope="module")
def rows(pack, tmp_path_factory):
    output = tmp_path_factory.mktemp("published") / "library"
    anyio.run(partial(publish, pack, output, oracle=CertifyingOracle()))
    return list(read_rows(output / PUBLISHED_FILE))


@pytest.fixture(scope="module")
def controls(rows):
    return ControlCandidate(rows, seed=SEED)


@pytest.fixture(scope="module")
def tasks(pack, rows):
    """The first executable task of each template, by task id."""
    first = {}
    for row in rows:
        first.setdefault(row["template_id"], row)
    return {
        row["task_id"]: task_of(row, project_task(pack, row, script_of(row), NO_HASH))
        for row in first.values()
    }


@pytest.fixture(scope="module")
def episodes(pack, controls, tasks):
    async def hold():
        async with OracleHost(
            pack.code(),
            level="process",
            mode="shared",
            deadlines=WorkerDeadlines(),
            limits=WorkerLimits(),
        ) as host:
            return await hold_all(
                controls, CONTROL_NAMES, lambda _: tasks.values(), host
            )

    return anyio.run(hold)


@pytest.mark.slow
def test_library_holds_all_nine_policies(rows):
    assert len({row["turn_policy"] for row in rows}) == 9


@pytest.mark.slow
@pytest.mark.parametrize("model", CONTROL_NAMES)
def test_live_scores_fail_exactly_the_declared_gates(episodes, controls, tasks, model):
    found = {}
    declared = {}
    for task_id, task in tasks.items():
        expectation = controls.expectation(model, task_id, "executable")
        declared[task_id] = set(expectation.failed)
        found[task_id] = failed_gates(episodes[model, task_id], task) - expectation.open

    assert found == declared


@pytest.mark.slow
def test_no_live_episode_ends_as_another_partys_stop(episodes):
    assert {episode.status for episode in episodes.values()} == {
        "completed",
        "candidate_mismatch",
        "unusable_tool_call_ids",
        "confirmation_not_earned",
    }
