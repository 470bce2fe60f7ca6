"""The evaluation record of a run over recorded conversations."""

import json

import pytest

from harness.accounting.again import NotRescorableError, score_again
from harness.canonical import hash_file
from harness.cli.main import main
from harness.evaluations.pairs import Label, judge
from harness.evaluations.samples import row_values
from harness.evaluations.stored import read_stored
from tests.evaluations.records import entry
from tests.run.teacher_forced.conversations import SCORED, TurnBench
from tests.run.teacher_forced.test_evaluate import outage, run_with


def test_record_is_bound_by_the_manifest_and_names_every_file(turns):
    run_with(turns)
    record = read_stored(turns.output).payload

    manifest = json.loads((turns.output / "eval_manifest.json").read_text())
    stated = manifest["artifacts"]["eval_record"]["content_hash"]
    assert stated == hash_file(turns.output / "eval_record.json")
    assert record["artifacts"] == {
        name: hash_file(turns.output / name) for name in record["artifacts"]
    }
    assert {"scores.json", "events.jsonl", "dataset.jsonl"} <= record[
        "artifacts"
    ].keys()
    assert record["kind"] == "mlperf-agentic"


def test_score_of_the_report_folder_agrees_in_all_that_files_tell(turns, tmp_path):
    run_with(turns, outage("repo-a", 3))
    words = ["--dataset", str(turns.dataset), "--report-dir", str(turns.output)]
    scored = tmp_path / "scored"
    assert main(["score", "mlperf-agentic", *words, "--output", str(scored)]) == 0

    pair = judge(entry(turns.output), entry(scored))

    assert pair.reasons == ()
    assert pair.label is Label.CROSS_RUNTIME
    assert pair.left.figure["value"] == pair.right.figure["value"]
    assert pair.left.not_scored == "stops.share_over_cap"
    assert pair.right.not_scored == "turns_missing"


def test_other_repeats_are_another_plan(turns, tmp_path):
    run_with(turns)
    (tmp_path / "twice").mkdir()
    twice = TurnBench(tmp_path / "twice")
    run_with(twice, asking={"repeats": 2})

    pair = judge(entry(turns.output), entry(twice.output, "twice"))
    assert [reason.code for reason in pair.reasons] == ["plan"]


def test_turns_can_be_paired(turns):
    run_with(turns, outage("repo-a", 3))

    assert len(row_values(entry(turns.output)).by_row) == SCORED


def test_present_scorer_gives_the_recorded_metrics(turns):
    run_with(turns, outage("repo-a", 3))
    record = read_stored(turns.output)

    (subject,) = record.payload["subjects"]
    again = score_again(record, [])[subject["name"]]
    assert {n: m.as_payload() for n, m in again.items()} == subject["metrics"]


@pytest.mark.parametrize(
    ("file", "code"),
    [("dataset.jsonl", "gold_missing"), ("events.jsonl", "raw_output_missing")],
)
def test_what_is_lost_has_its_reason(turns, file, code):
    run_with(turns)
    (turns.output / file).unlink()

    with pytest.raises(NotRescorableError) as refused:
        score_again(read_stored(turns.output), [])

    assert [each.code for each in refused.value.obstacles] == [code]
