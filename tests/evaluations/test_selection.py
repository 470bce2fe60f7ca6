"""Which record of a run is used is said, and whatever is wrong is told at once."""

import pytest

from harness.errors import EngineError, UsageError
from harness.evaluations.selection import select_records
from harness.evaluations.stored import read_stored
from tests.evaluations.records import later, subject, written


@pytest.fixture
def two(tmp_path):
    run = written(tmp_path / "run")
    again = later(tmp_path / "again", run, subject(correct=1))
    other = written(tmp_path / "other", subject(correct=2))
    return run, again, other


def test_own_record_is_the_default(two):
    run, again, other = two

    first, second = select_records([run, other], [])
    assert (first.record.record_id, first.chosen) == ("original", False)
    assert [each.folder for each in first.others] == [again]
    assert second.others == ()


def test_later_record_can_be_chosen(two):
    run, again, other = two
    wanted = read_stored(again).record_id

    first, _ = select_records([run, other], [f"run={wanted}"])
    assert (first.record.folder, first.chosen) == (again, True)
    assert [each.folder for each in first.others] == [run]


def test_everything_wrong_is_told_at_once(two, tmp_path):
    run, _, other = two
    use = [
        "run=eval-000000000000",
        "run",
        "nobody=original",
        "other=",
        "other=original",
    ]

    with pytest.raises(UsageError) as refused:
        select_records([run, other, tmp_path / "gone"], use)

    wheres = [violation.where for violation in refused.value.violations]
    assert wheres == [
        "--use run",
        "--use nobody=original",
        "--use other=",
        "--use run=eval-000000000000",
        str(tmp_path / "gone"),
    ]


def test_refusal_lists_what_exists(two):
    run, again, other = two

    with pytest.raises(UsageError) as refused:
        select_records([run, other], ["run=best"])

    text = str(refused.value)
    assert f"original (completed), {read_stored(again).record_id} (completed)" in text


def test_failed_evaluation_is_refused_with_the_others(tmp_path):
    error = EngineError("eval_engine_failed", "it broke")
    run = written(tmp_path / "run", subject(), failure=error)
    later(tmp_path / "again", run)

    with pytest.raises(UsageError, match="did not come to its end") as refused:
        select_records([run], [])

    assert "original (failed), eval-" in str(refused.value)


def test_two_runs_of_one_name_are_refused(tmp_path):
    runs = [written(tmp_path / place / "run") for place in ("a", "b")]

    with pytest.raises(UsageError, match="2 runs are called 'run'"):
        select_records(runs, [])


def test_folder_that_is_named_twice_is_refused_as_that(two, tmp_path):
    run, _, other = two
    (tmp_path / "link").symlink_to(run)

    with pytest.raises(UsageError, match="'run' is named 2 times") as refused:
        select_records([run, other, tmp_path / "link"], [])
    assert len(refused.value.violations) == 1


def test_run_has_one_record(two):
    run, _, other = two

    with pytest.raises(UsageError, match="has a record already"):
        select_records([run, other], ["run=original", "run=original"])
