"""What a candidate knew too early stands in the report of a real run."""

import pytest

from harness.audit.runs import audit_run
from harness.run.replay import replay_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory, benchmark, controls):
    from tests.run.conftest import Bench

    bench = Bench(tmp_path_factory.mktemp("finished"), benchmark, controls)
    bench.run(bench.config("gold", "early-confirm"))
    return bench


def early(finished, alias):
    (found,) = (c for c in finished.report()["candidates"] if c["alias"] == alias)
    return found["premature_knowledge"]


@pytest.mark.slow
def test_gold_candidate_is_watched_and_knows_nothing_early(finished):
    found = early(finished, "gold")

    assert found["values"] > 0
    assert found["decoys"] > 0
    assert (found["appeared"], found["decoys_appeared"]) == (0, 0)


@pytest.mark.slow
def test_early_confirmation_is_counted_by_template(finished):
    found = early(finished, "early-confirm")

    seen = {t["kind"] for t in found["by_template"] if t["appeared"]}
    assert seen == {"confirmation"}
    assert (found["appeared"], found["sightings"]) == (0, [])


@pytest.mark.slow
def test_replay_counts_the_same(finished):
    replayed = replay_run(finished.output())

    assert replayed.is_equal
    assert replayed.report == finished.report()


@pytest.mark.slow
def test_audit_of_a_finished_run_follows_and_shows_it(finished):
    found = audit_run(finished.output())

    assert found["problems"] == []
    assert [c["premature_knowledge"] for c in found["candidates"]] == [
        early(finished, c["alias"]) for c in found["candidates"]
    ]
