"""A run folder keeps the plan that it was asked to carry out."""

from dataclasses import replace

import pytest

from harness.canonical import hash_file
from harness.errors import ArtifactError, EvidenceError
from harness.evidence.plan_file import (
    PLAN_FILE,
    PlanFile,
    PlanHeader,
    PlannedCandidate,
    write_plan,
)
from tests.evidence.samples import POLICY, key, task

HEADER = PlanHeader(
    schema_version="1.0",
    scope="trace",
    plan_identity=key(1),
    eval_config_hash=key(2),
    source_run_id="library-0.1.0-ab",
    source_verification_identity=key(3),
    oracle_verification_identity=None,
    scoring_policy_hash=key(4),
    scoring_policy=POLICY,
    trials=2,
    task_ids=("t0", "t1", "t2"),
    candidates=(
        PlannedCandidate("gold", "local:m@x", None),
        PlannedCandidate("words", "local:n@x", ("t2", "t0")),
    ),
    facts={"max_stop_share": 0.1},
)
TASKS = [task(f"t{n}") for n in range(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / PLAN_FILE.file_name


@pytest.fixture
def plan(path):
    write_plan(path, HEADER, TASKS)
    with PlanFile.open(path) as opened:
        yield opened


def test_a_plan_reads_back_as_it_was_written(plan):
    assert plan.header == HEADER
    assert list(plan.tasks()) == TASKS
    assert (len(plan), plan.record_count) == (3, 4)


def test_one_task_is_found_by_its_id(plan):
    assert plan.task("t1") == TASKS[1]
    assert "t1" in plan
    assert "t9" not in plan


def test_a_task_outside_the_plan_is_refused(plan):
    with pytest.raises(ArtifactError, match="task t9"):
        plan.task("t9")


def test_a_candidate_has_all_tasks_or_its_own_in_its_order(plan):
    everyone, own = HEADER.candidates

    assert [spec.task_id for spec in plan.tasks_for(everyone)] == ["t0", "t1", "t2"]
    assert [spec.task_id for spec in plan.tasks_for(own)] == ["t2", "t0"]


def test_the_hash_is_that_of_the_file(plan, path):
    assert plan.content_hash == hash_file(path) == write_plan(path, HEADER, TASKS)


@pytest.mark.parametrize(
    ("header", "tasks"),
    [
        (replace(HEADER, trials=3), TASKS),
        (replace(HEADER, task_ids=("t0", "t1")), TASKS[:2]),
        (HEADER, TASKS[::-1]),
    ],
    ids=["header", "fewer tasks", "another order"],
)
def test_another_plan_in_its_place_is_a_conflict(plan, path, header, tasks):
    with pytest.raises(ArtifactError, match="eval_cli_artifact_conflict"):
        write_plan(path, header, tasks)

    assert hash_file(path) == plan.content_hash


def test_a_plan_cut_in_its_last_line_or_before_it_is_refused(path):
    write_plan(path, HEADER, TASKS)
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(start, len(whole), 11):
        path.write_bytes(whole[:cut])
        with pytest.raises(ArtifactError, match="not whole"):
            PlanFile.open(path)


def test_an_empty_plan_is_refused(path):
    path.write_bytes(b"")
    with pytest.raises(ArtifactError, match="not whole"):
        PlanFile.open(path)


@pytest.mark.parametrize("position", [0.1, 0.4, 0.9])
def test_a_changed_byte_is_refused_with_its_record(path, position):
    write_plan(path, HEADER, TASKS)
    data = bytearray(path.read_bytes())
    place = int(len(data) * position)
    data[place] ^= 1
    path.write_bytes(bytes(data))
    record = data[:place].count(b"\n") + 1
    with pytest.raises(EvidenceError, match=f"record {record}, byte offset"):
        PlanFile.open(path)


def test_a_task_twice_is_refused(path):
    write_plan(path, replace(HEADER, task_ids=("t0", "t0")), [TASKS[0], TASKS[0]])
    with pytest.raises(EvidenceError, match="record 3"):
        PlanFile.open(path)


def test_a_plan_of_another_length_than_its_header_says_is_not_written(path):
    alive = []

    def tasks():
        for number in range(50):
            alive.append(number)
            yield task(f"t{number}")

    with pytest.raises(ArtifactError, match="50 tasks"):
        write_plan(path, HEADER, tasks())

    assert alive == list(range(50))
    assert list(path.parent.iterdir()) == []
