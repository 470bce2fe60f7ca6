"""Whole runs over real sockets and real workers."""

import json

import pytest

from harness.benchmark.tables import read_rows
from harness.candidates.control import ControlCandidate
from harness.errors import ArtifactError, CandidateError
from harness.evidence.task_table import read_task_rows
from harness.run.evaluate import dry_run

CONTROLS = ("gold", "silent", "words", "eager", "wrong-argument", "early-confirm")


@pytest.fixture(scope="module")
def controls_by_row(benchmark):
    return ControlCandidate(list(read_rows(benchmark / "benchmark.parquet")))


def failed_gates(row):
    """The gates that the task table says a task failed."""
    return {record.subject for record in row.failure_records if record.layer == "gate"}


@pytest.mark.slow
@pytest.mark.parametrize("executable", [True, False], ids=["executable", "trace"])
def test_each_control_fails_exactly_the_gates_that_it_declares(
    bench, controls_by_row, executable
):
    bench.run(bench.config(*CONTROLS, executable=executable))

    mode = "executable" if executable else "trace"
    seen = 0
    for row in read_task_rows(bench.output() / "eval_task_results.parquet"):
        expected = controls_by_row.expectation(row.candidate_alias, row.task_id, mode)
        failed = failed_gates(row)
        seen += 1

        assert failed - expected.open == expected.failed - expected.open, row
        assert row.task_success is not expected.touched, row
    assert seen == len(CONTROLS) * len(controls_by_row.tasks)


def test_gold_succeeds_on_every_task(bench):
    report = bench.run(bench.config("gold")).report

    candidate = report["candidates"][0]

    assert candidate["successful_tasks"] == candidate["task_count"] > 0
    assert candidate["metrics"]["task_success_rate"]["value"] == 1.0
    assert candidate["non_candidate_stops"] == 0


def test_trace_run_needs_no_pack_and_starts_no_worker(bench):
    report = bench.run(bench.config("gold", executable=False)).report

    assert report["eval_scope"] == "trace"
    assert report["candidates"][0]["metrics"]["task_success_rate"]["value"] == 1.0
    assert not (bench.output() / "tool_trace_cache.jsonl").exists()


def test_both_modes_give_one_conversation_the_same_trace_gates(bench):
    trace_gates = {
        "tool_selection",
        "arguments",
        "schema_valid",
        "call_grouping",
        "call_ordering",
        "text_turn",
        "trace_completion",
    }
    bench.run(bench.config("mixture", executable=False, name="trace"))
    bench.run(bench.config("mixture", name="live"))

    def gates(name):
        rows = read_task_rows(bench.output(name) / "eval_task_results.parquet")
        return {row.task_id: sorted(failed_gates(row) & trace_gates) for row in rows}

    assert gates("trace") == gates("live")
    assert any(gates("trace").values())


def test_trials_repeat_every_task_under_their_own_identity(bench):
    report = bench.run(bench.config("gold", eval={"trials": 2})).report

    rows = list(read_task_rows(bench.output() / "eval_task_results.parquet"))
    candidate = report["candidates"][0]

    assert candidate["trials"] == 2
    assert candidate["task_count"] == len(rows)
    assert {row.trial for row in rows} == {0, 1}


def test_run_folder_holds_no_path_of_the_machine(bench, benchmark):
    bench.run(bench.config("gold"))

    for path in bench.output().iterdir():
        data = path.read_bytes()

        assert str(bench.folder).encode() not in data, path.name
        assert str(benchmark).encode() not in data, path.name


def test_finished_folder_is_replayed_and_not_asked_again(bench):
    config = bench.config("gold")
    first = bench.run(config)
    before = {p.name: p.read_bytes() for p in bench.output().iterdir()}

    again = bench.run(config)

    assert again.replayed
    assert again.report == first.report
    assert {p.name: p.read_bytes() for p in bench.output().iterdir()} == before


def test_folder_of_another_config_is_refused(bench):
    bench.run(bench.config("gold"))
    other = bench.config("words", name="other", outputs={"output_dir": "eval-run"})

    with pytest.raises(ArtifactError) as caught:
        bench.run(other)

    assert caught.value.code == "eval_cli_artifact_conflict"


def test_missing_key_is_refused_before_anything_is_written(bench, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    config = bench.config("gold", api_key_env="NO_SUCH_KEY")

    with pytest.raises(CandidateError) as caught:
        bench.run(config)

    assert caught.value.code == "eval_candidate_credentials_missing"
    assert not bench.output().exists()


@pytest.mark.parametrize("key", ["gehe\u00efm-key", "two\nlines", "\u201cquoted\u201d"])
def test_key_that_no_header_can_carry_is_refused_before_anything_is_written(
    bench, monkeypatch, key
):
    monkeypatch.setenv("ODD_KEY", key)

    with pytest.raises(CandidateError) as caught:
        bench.run(bench.config("gold", api_key_env="ODD_KEY"))

    assert caught.value.code == "eval_candidate_credentials_missing"
    assert key not in str(caught.value)
    assert not bench.output().exists()


def test_finished_folder_that_was_edited_is_named_and_not_shown_as_finished(bench):
    config = bench.config("words")
    bench.run(config)
    path = bench.output() / "eval_report.json"
    report = json.loads(path.read_text())
    report["candidates"][0]["successful_tasks"] += 1
    path.write_text(json.dumps(report))

    with pytest.raises(ArtifactError) as caught:
        bench.run(config)

    (violation,) = caught.value.violations
    assert violation.where == "eval_report.json.candidates[0].successful_tasks"


def test_dry_run_misses_the_key_that_a_run_would_miss(bench, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    config = bench.config("gold", api_key_env="NO_SUCH_KEY")

    with pytest.raises(CandidateError) as caught:
        dry_run(config)

    assert caught.value.code == "eval_candidate_credentials_missing"


def test_report_is_strict_json_with_counts_beside_every_rate(bench):
    bench.run(bench.config("words"))
    report = json.loads(
        (bench.output() / "eval_report.json").read_text(),
        parse_constant=pytest.fail,
    )

    for metric in report["candidates"][0]["metrics"].values():
        counted = metric["denominator"] > 0

        assert counted == (metric["value"] is not None)
        assert counted == (metric["not_applicable_reason"] is None)
