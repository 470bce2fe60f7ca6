"""Scores that come about while a run goes on."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import EvidenceError
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.plan_file import PlanFile
from harness.evidence.task_table import read_task_rows
from harness.run.committing import accompanied
from harness.run.live_scoring import LiveScoring, RecordedSoFar
from harness.run.recorded import LiveEvidence, RunEvidence
from harness.run.score import score_run
from harness.run.settings import RunSettings

DEADLINE_S = 10


@pytest.fixture
def finished(bench):
    """The folder of a run of two candidates."""
    bench.run(bench.config("gold", "mixture", executable=False))
    return bench.output()


@given(st.permutations(range(12)), st.integers(0, 11))
def test_a_place_is_reached_when_it_and_all_before_it_are_recorded(order, place):
    recorded = RecordedSoFar()
    reached = []

    async def reach():
        await recorded.reach(place)
        reached.append(True)

    async def run():
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(reach)
                for count, each in enumerate(order, start=1):
                    await anyio.lowlevel.checkpoint()
                    before = set(order[: count - 1])
                    assert bool(reached) is (before >= set(range(place + 1)))
                    recorded.add(each)
                    await anyio.lowlevel.checkpoint()
                    await anyio.lowlevel.checkpoint()

    anyio.run(run)

    assert reached


def test_scores_beside_a_run_are_those_of_its_evidence(finished):
    rows, later_rows = [], []
    with RunEvidence(finished) as evidence:
        scoring = LiveScoring(evidence, rows.append)
        count = len(list(read_task_rows(finished / "eval_task_results.parquet")))

        async def record():
            for place in reversed(range(count)):
                scoring.recorded.add(place)
            while len(rows) < count // 2:
                await anyio.lowlevel.checkpoint()

        anyio.run(accompanied, scoring.run, record)
        beside = len(rows)
        scored = scoring.result()

    with RunEvidence(finished) as evidence:
        assert score_run(evidence, later_rows.append) == scored
    assert rows == later_rows
    assert 0 < beside < count


def test_nothing_is_scored_before_it_is_recorded(finished):
    rows = []
    with RunEvidence(finished) as evidence:
        scoring = LiveScoring(evidence, rows.append)
        scoring.recorded.add(0)
        scoring.recorded.add(2)

        async def until_the_first_is_scored():
            while not rows:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()

        anyio.run(accompanied, scoring.run, until_the_first_is_scored)

    assert len(rows) == 1


def test_evidence_that_is_not_there_stops_the_run_at_its_end_only(finished, tmp_path):
    whole = (finished / "candidate_io_cache.jsonl").read_bytes()
    half = whole[: whole.index(b"\n", len(whole) // 2) + 1]
    (tmp_path / "half.jsonl").write_bytes(half)
    resolved = read_json_artifact(finished / "resolved_eval_config.json")
    rows = []
    with (
        PlanFile.open(finished / "eval_plan.jsonl") as plan,
        CandidateLog.open(tmp_path / "half.jsonl", writable=False) as log,
    ):
        settings = RunSettings.from_resolved(resolved)
        scoring = LiveScoring(LiveEvidence(settings, plan, log, None), rows.append)

        async def record():
            for place in range(1000):
                scoring.recorded.add(place)
            while scoring.failure is None:
                await anyio.lowlevel.checkpoint()

        anyio.run(accompanied, scoring.run, record)
        with pytest.raises(EvidenceError, match="never recorded"):
            scoring.result()

    assert rows
