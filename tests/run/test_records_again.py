"""Records of finished runs: what they state, and how their scores are made again."""

import json
import shutil

import pytest

from harness.accounting.account import Status, account
from harness.accounting.again import NotRescorableError, score_again
from harness.accounting.document import Published
from harness.evaluations.entry import candidates_of
from harness.evaluations.pairs import Label, judge
from harness.evaluations.samples import row_values
from harness.evaluations.stored import read_stored, records_of_run
from harness.run.rescore import rescore_run

pytestmark = pytest.mark.slow


def entries(folder, name):
    return {e.subject["name"]: e for e in candidates_of(name, read_stored(folder))}


def number(run, **changes):
    given = {
        "place": "paper",
        "metric": "task_success_rate",
        "metric_version": "1.0",
        "value": 1.0,
        "run": run,
        "subject": "chatty",
        "evidence": (),
        "replication": None,
    }
    return Published(**{**given, **changes})


@pytest.fixture(scope="module")
def loose(bent, tmp_path_factory):
    """A copy of the executable run with a rescoring beside it."""
    place = tmp_path_factory.mktemp("loose")
    shutil.copytree(bent.output("executable"), place / "run")
    rescore_run(
        place / "run", "order-free", place / "free", render_page=lambda *_: "<p>\n"
    )
    return place


@pytest.mark.parametrize("name", ["trace", "executable", "verbatim"])
def test_metrics_of_a_record_are_those_of_the_report(bent, name):
    record = read_stored(bent.output(name)).payload

    stated = {each["name"]: each["metrics"] for each in record["subjects"]}
    for candidate in bent.report(name)["candidates"]:
        for metric, figure in candidate["metrics"].items():
            assert stated[candidate["alias"]][metric]["value"] == figure["value"]


@pytest.mark.parametrize("name", ["trace", "executable"])
def test_present_scorer_gives_the_recorded_metrics(bent, name):
    record = read_stored(bent.output(name))

    again = score_again(record, [])
    for subject in record.payload["subjects"]:
        figures = {n: m.as_payload() for n, m in again[subject["name"]].items()}
        assert figures == subject["metrics"]


def test_rescoring_is_scored_again_under_its_own_policy(loose):
    record = read_stored(loose / "free")

    again = score_again(record, [])
    assert {
        name: figures["task_success_rate"].value for name, figures in again.items()
    } == {
        each["name"]: each["metrics"]["task_success_rate"]["value"]
        for each in record.payload["subjects"]
    }


def test_rescoring_is_found_beside_its_run_and_is_incompatible_with_it(loose):
    own, later = records_of_run(loose / "run")

    assert own.record_id == "original"
    assert later.folder == loose / "free"
    left = entries(loose / "run", "run")["chatty"]
    right = entries(loose / "free", "free")["chatty"]
    pair = judge(left, right)
    assert [reason.code for reason in pair.reasons] == ["contract"]


def test_hosted_candidates_of_one_run_are_cross_runtime(bent):
    found = entries(bent.output("executable"), "run")

    pair = judge(found["chatty"], found["extras"])
    assert pair.label is Label.CROSS_RUNTIME
    assert {"device", "versions"} <= {each.condition for each in pair.differences}


def test_trace_and_executable_runs_are_incompatible(bent):
    traced = entries(bent.output("trace"), "trace")["chatty"]
    executed = entries(bent.output("executable"), "executable")["chatty"]

    codes = [reason.code for reason in judge(traced, executed).reasons]
    assert {"contract", "pack", "scope"} <= set(codes)


def test_episodes_are_paired_by_task(bent):
    chatty = entries(bent.output("executable"), "run")["chatty"]

    values = row_values(chatty).by_row
    assert sum(values.values()) == chatty.figure["numerator"]
    assert len(values) == chatty.figure["denominator"]


def test_metric_of_executed_tasks_cannot_be_made_of_a_trace(bent):
    (found,) = account(
        [number(bent.output("trace"), metric="assertion_success_rate", value=0.5)]
    )

    assert found.status is Status.NOT_RESCORABLE
    assert [reason.code for reason in found.reasons] == ["trace_only_evidence"]


def test_damaged_evidence_is_a_reason(loose, tmp_path):
    shutil.copytree(loose / "run", tmp_path / "run")
    log = tmp_path / "run" / "candidate_io_cache.jsonl"
    log.write_bytes(log.read_bytes().replace(b"completion", b"complation", 1))

    with pytest.raises(NotRescorableError) as refused:
        score_again(read_stored(tmp_path / "run"), [])

    assert [each.code for each in refused.value.obstacles] == ["raw_output_missing"]
    assert "not the file that was scored" in str(refused.value.obstacles[0].detail)


def test_another_run_under_a_rescoring_is_a_reason(bent, loose, tmp_path):
    shutil.copytree(loose / "free", tmp_path / "free")
    shutil.rmtree(tmp_path / "free" / "parent")
    shutil.copytree(bent.output("trace"), tmp_path / "free" / "parent")

    with pytest.raises(NotRescorableError) as refused:
        score_again(read_stored(tmp_path / "free"), [])

    assert "not the run that was scored" in str(refused.value.obstacles[0].detail)


def test_run_that_lost_its_manifest_is_incomplete(loose, tmp_path):
    shutil.copytree(loose / "run", tmp_path / "run")
    (tmp_path / "run" / "eval_manifest.json").unlink()

    (found,) = account([number(tmp_path / "run")])
    assert [reason.code for reason in found.reasons] == ["rows_incomplete"]


def test_record_of_a_run_holds_no_path_and_no_secret(bent):
    text = json.dumps(read_stored(bent.output("executable")).payload)

    assert str(bent.output("executable").parent) not in text
    assert "127.0.0.1" not in text
