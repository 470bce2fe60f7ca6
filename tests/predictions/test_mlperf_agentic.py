"""From a report folder to two files: what is written, and what is refused."""

import json
import subprocess
import sys

import pytest

from harness.cli.main import main
from harness.errors import FairtrialError, UsageError
from harness.predictions.mlperf_agentic import score_report
from tests.parity.mlperf_edges import (
    Run,
    answered,
    call,
    event,
    log_bytes,
    output,
    two_rows,
)


@pytest.fixture
def report(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    return folder


def words(dataset, report, output_folder, *more):
    return [
        *("score", "mlperf-agentic", "--dataset", str(dataset)),
        *("--report-dir", str(report), "--output", str(output_folder), *more),
    ]


def test_diagnostics_name_contract_and_inputs(report, tmp_path):
    score_report(Run().write(report), report, tmp_path / "out")

    found = json.loads((tmp_path / "out/diagnostics.json").read_text())
    assert found["contract"]["name"] == "mlperf-agentic-1"
    assert set(found["inputs"]) == {"dataset", "events"}
    assert found["unanswered_turns"] == []


def test_score_file_holds_nothing_of_our_own(report, tmp_path):
    score_report(Run().write(report), report, tmp_path / "out")

    found = json.loads((tmp_path / "out/scores.json").read_text())
    assert list(found) == ["score", "turns", "domains", "per_turn"]


def test_torn_and_foreign_lines_are_counted(report, tmp_path):
    lines = log_bytes(answered([call()]))
    run = Run(events=b"\n \n{\n" + lines + b"\xff\n" + lines[:20])

    scored = score_report(run.write(report), report, tmp_path / "out")

    assert scored.score == 1.0
    assert scored.diagnostics["lines"] == {
        "read": 2,
        "skipped": {"line_not_json": 2, "line_not_utf8": 1},
        "of_no_expected_turn": 0,
    }


def test_log_is_read_again_where_the_issue_changes_the_rule(report, tmp_path):
    rows = [
        *two_rows(),
        {"conversation_id": "sim_1", "turn": 1, "role": "user", "content": "go"},
        {
            "conversation_id": "sim_1",
            "turn": 2,
            "role": "assistant",
            "content": "x",
            "intent_codes": ["I001"],
        },
    ]
    issued, complete = answered([call()])
    complete["data"] = output("I001", tool_calls=[call()])
    moved = event("sample.issued", conversation_id="sim_1")
    run = Run(rows=rows, events=log_bytes([issued, complete, moved]))

    scored = score_report(run.write(report), report, tmp_path / "out")

    assert scored.head["domains"] == {"workflow": {"score": 1.0, "scored": 1}}


@pytest.mark.parametrize("index_map", ["[]", "{", '{"other":{}}'])
def test_index_map_without_the_data_set_is_refused(report, tmp_path, index_map):
    dataset = Run().write(report)
    (report / "sample_idx_map.json").write_text(index_map)

    assert main(words(dataset, report, tmp_path / "out")) == 3


def test_data_set_may_have_another_name(report, tmp_path, capsys):
    dataset = Run(index_map={"mine": {}}).write(report)

    status = main(words(dataset, report, tmp_path / "out", "--dataset-name", "mine"))

    assert status == 0
    assert f"  {'score':32} 1.0000  (primary)" in capsys.readouterr().out


def test_text_tells_what_was_left_out(report, tmp_path, capsys):
    issued, complete = answered([call("{")])
    rows = [*two_rows("b"), *two_rows()]
    other = event("sample.issued", conversation_id="b", uuid="v")
    dataset = Run(
        rows=rows, events=log_bytes([issued, complete, other]) + b"{\n"
    ).write(report)

    assert main(words(dataset, report, tmp_path / "out")) == 0

    told = capsys.readouterr().out
    assert f"  {'unanswered':32} 1: 1 not_completed" in told
    assert f"  {'calls skipped':32} 1 arguments_not_json" in told
    assert f"  {'lines skipped':32} 1 line_not_json" in told
    assert "no headline: turns_missing" in told


def test_paths_that_are_not_there_are_a_usage_error(report, tmp_path):
    dataset = Run().write(report)
    gone, out = tmp_path / "gone", tmp_path / "out"

    for files in ((gone, report, out), (dataset, gone, out), (dataset, report, report)):
        with pytest.raises(UsageError):
            score_report(*files)
    assert not out.exists()


def test_refusal_leaves_no_output(report, tmp_path):
    dataset = Run(rows=two_rows()[1:]).write(report)

    with pytest.raises(FairtrialError):
        score_report(dataset, report, tmp_path / "out")

    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_scoring_needs_only_the_standard_library(report, tmp_path):
    """A plain interpreter without site packages writes the same bytes."""
    dataset = Run().write(report)
    score_report(dataset, report, tmp_path / "here")
    program = (
        "import sys; from pathlib import Path as P\n"
        "from harness.predictions.mlperf_agentic import score_report\n"
        "score_report(*map(P, sys.argv[1:]))"
    )

    subprocess.run(
        [sys.executable, "-S", "-c", program, dataset, report, tmp_path / "there"],
        check=True,
        env={"PYTHONPATH": "."},
    )

    for name in ("scores.json", "diagnostics.json"):
        there = (tmp_path / "there" / name).read_bytes()
        assert (tmp_path / "here" / name).read_bytes() == there
