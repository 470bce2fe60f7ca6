"""Plans are seeded, cover all kinds, and leave controls."""

import pytest

from harness.drill.oracle_faults import oracle_faults
from harness.drill.schedule import plan_rounds, unplaceable
from harness.drill.serving_faults import serving_faults

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
KINDS = {fault.name for fault in (*serving_faults(), *oracle_faults())}


def hits_of(rounds):
    return [hit for plan in rounds for hit in (*plan.serving, *plan.oracle)]


def test_same_seed_gives_the_same_plan(tasks):
    def plan(seed):
        rounds = plan_rounds(tasks, seed=seed, episodes=300)
        return [(h.task_id, h.fault.name) for h in hits_of(rounds)]

    assert plan(3) == plan(3)
    assert plan(3) != plan(4)


def test_task_meets_at_most_one_fault_in_a_round(tasks):
    for plan in plan_rounds(tasks, seed=1, episodes=600):
        met = [hit.task_id for hit in hits_of([plan])]

        assert len(met) == len(set(met))


def test_every_round_keeps_controls(tasks):
    for plan in plan_rounds(tasks, seed=1, episodes=600):
        assert len(hits_of([plan])) <= 0.9 * len(tasks)


def test_all_kinds_come_up(tasks):
    rounds = plan_rounds(tasks, seed=1, episodes=1450)

    assert {hit.fault.name for hit in hits_of(rounds)} == KINDS
    assert len(hits_of(rounds)) >= 950


def test_kinds_without_a_place_are_named(tasks):
    silent = [task for task in tasks if not any(task.changes)]

    missing = unplaceable(silent)

    assert "changing call: exit" in missing
    assert "reading call: exit" not in missing


def test_task_that_opens_like_another_meets_no_fault_at_the_endpoint(tasks):
    alike = {task.task_id for task in tasks if not task.is_recognised}
    rounds = plan_rounds(tasks, seed=1, episodes=1450)

    assert alike
    assert not alike & {hit.task_id for plan in rounds for hit in plan.serving}
