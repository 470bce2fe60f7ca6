"""Published numbers, accounted for from what their runs kept."""

import json
import os
from decimal import Decimal

import pytest

from harness.accounting.account import _is_same
from harness.causes import EXIT_DONE, EXIT_USAGE
from harness.cli.main import main
from harness.errors import EngineError
from harness.evaluations.contracts import scorer_versions
from harness.evaluations.record import MetricValue
from tests.evaluations.records import subject, written

ROWS = [
    {"id": "r1", "gold": "yes", "raw": "Yes", "finish_reason": "stop"},
    {"id": "r2", "gold": "no", "raw": "yes", "finish_reason": "stop"},
    {"id": "r3", "gold": "no", "raw": "no", "finish_reason": "stop"},
]
BASE = {"place": "paper", "metric": "accuracy", "metric_version": "1", "value": 0.6667}


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """One scoring of labels; two of three rows are right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.json").write_text('["yes", "no"]')
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    words = ["--labels", "labels.json", "--rows", "rows.jsonl", "--output", "run"]
    assert main(["score", "classification", *words]) == EXIT_DONE
    return tmp_path


@pytest.fixture
def accounted(scored, capsys):
    def accounted(*entries, status=EXIT_DONE):
        capsys.readouterr()
        document = {
            "schema_version": "1",
            "published": [{**BASE, **e} for e in entries],
        }
        (scored / "numbers.json").write_text(json.dumps(document))
        assert main(["accounting", "numbers.json", "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return accounted


KEPT = {"run": "run", "evidence": ["rows.jsonl", "labels.json"]}


def test_number_that_comes_out_again_is_unaffected(accounted):
    (number,) = accounted(KEPT)["numbers"]

    assert number["status"] == "unaffected"
    assert number["new"]["numerator"] == 2
    assert number["new"]["denominator"] == 3


def test_number_of_an_older_version_is_rescored_and_nothing_is_subtracted(accounted):
    (number,) = accounted({**KEPT, "metric_version": "0", "value": 0.5})["numbers"]

    assert number["status"] == "rescored"
    assert number["old"] == {"value": 0.5, "metric_version": "0"}
    assert number["new"]["value"] == 2 / 3
    assert number["new"]["metric_version"] == "1"
    assert number["new"]["change"] is None


def test_other_number_under_the_same_version_has_a_change_and_a_note(accounted):
    (number,) = accounted({**KEPT, "value": 0.5})["numbers"]

    assert number["status"] == "rescored"
    assert number["new"]["change"] == pytest.approx(1 / 6)
    assert "does not follow" in number["note"]


def test_files_that_lie_elsewhere_have_to_be_named(accounted):
    (number,) = accounted({"run": "run"})["numbers"]

    assert number["status"] == "not_rescorable"
    assert sorted(each["code"] for each in number["reasons"]) == [
        "contract_hash_mismatch",
        "raw_output_missing",
    ]


def test_changed_rows_are_not_the_evidence(accounted, scored):
    (scored / "rows.jsonl").write_text(json.dumps(ROWS[0]) + "\n")

    (number,) = accounted(KEPT)["numbers"]
    assert [each["code"] for each in number["reasons"]] == ["raw_output_missing"]


def test_number_without_a_run_is_not_rescorable(accounted):
    (number,) = accounted({"run": None})["numbers"]

    assert number["status"] == "not_rescorable"
    assert number["reasons"] == [
        {"code": "raw_output_missing", "detail": "no run was kept"}
    ]


@pytest.mark.parametrize("run", ["gone", "."])
def test_folder_without_a_record_is_a_reason_and_no_crash(accounted, run):
    (number,) = accounted({"run": run})["numbers"]

    assert number["status"] == "not_rescorable"
    assert number["reasons"][0]["code"] == "raw_output_missing"


def test_replication_stands_in_and_is_never_called_a_rescore(accounted, scored):
    written(scored / "again", subject(correct=4))

    found = accounted({"run": None, "replication": "again"})

    (number,) = found["numbers"]
    assert number["status"] == "replicated"
    assert number["new"] is None
    assert number["replication"]["value"] == 1.0
    assert number["replication"]["run"] == "again"
    assert "not a rescore" in found["replication_statement"]


def test_number_that_can_be_rescored_is_so_beside_a_replication(accounted, scored):
    written(scored / "again", subject(correct=4))

    (number,) = accounted({**KEPT, "replication": "again"})["numbers"]
    assert number["status"] == "unaffected"
    assert number["replication"]["value"] == 1.0


def test_scorer_that_is_gone_is_a_reason(accounted, scored):
    gone = {**scorer_versions("classification"), "contract": "ranking"}
    written(scored / "old", scorer=gone)

    (number,) = accounted({"run": "old"})["numbers"]
    assert [each["code"] for each in number["reasons"]] == ["scorer_version_gone"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [("poem", "scorer_version_gone"), ("score", "raw_output_missing")],
)
def test_record_that_no_evaluation_writes_is_a_reason(accounted, scored, kind, code):
    written(scored / "odd", kind=kind, details={"inputs": {"rows": 3}})

    (number,) = accounted({"run": "odd"})["numbers"]
    assert [each["code"] for each in number["reasons"]] == [code]


def test_metric_that_is_gone_is_a_reason(accounted):
    (number,) = accounted({**KEPT, "metric": "loose_accuracy"})["numbers"]

    (reason,) = number["reasons"]
    assert reason["code"] == "scorer_version_gone"
    assert "accuracy, macro_f1" in reason["detail"]


def test_failed_evaluation_has_no_score_to_make_again(accounted, scored):
    error = EngineError("eval_engine_failed", "it broke")
    written(scored / "failed", subject(), failure=error)

    (number,) = accounted({"run": "failed"})["numbers"]
    assert [each["code"] for each in number["reasons"]] == ["rows_incomplete"]


def status_of(scored, capsys, written, name="numbers.yaml"):
    """The status of one number, written so, for a run with 2 of 3 rows right."""
    document = {"schema_version": "1", "published": [{**BASE, **KEPT, "value": "HERE"}]}
    (scored / name).write_text(json.dumps(document).replace('"HERE"', written))
    capsys.readouterr()
    assert main(["accounting", name, "--json"]) == EXIT_DONE
    (number,) = json.loads(capsys.readouterr().out)["numbers"]
    return number["status"]


@pytest.mark.parametrize("name", ["numbers.yaml", "numbers.json"])
@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("0.7", "unaffected"),
        ("0.70", "rescored"),
        ("0.67", "unaffected"),
        ("0.66", "rescored"),
        ("0.670", "rescored"),
        ("0.66666666666666666", "unaffected"),
        ("1", "rescored"),
        ("6.67e-1", "unaffected"),
    ],
)
def test_number_is_held_to_the_digits_that_were_written(
    scored, capsys, written, status, name
):
    assert status_of(scored, capsys, written, name) == status


@pytest.mark.parametrize(
    ("written", "same"), [("0.62", True), ("0.63", True), ("0.64", False)]
)
def test_both_roundings_of_a_half_are_the_number(written, same):
    assert _is_same(Decimal(written), MetricValue(0.625, 5, 8)) is same


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("0.38461538461538464", True),
        ("0.384615384615385", True),
        ("0.3846153846154", True),
        ("0.3846153846155", False),
        ("0.38461538461538470", False),
    ],
)
def test_figure_with_counts_is_compared_exactly_or_as_its_double(written, same):
    assert _is_same(Decimal(written), MetricValue(5 / 13, 5, 13)) is same


@pytest.mark.parametrize(
    ("written", "same"), [("0.9033383723859918", True), ("0.90333837239", True)]
)
def test_last_digits_of_a_figure_that_was_summed_decide_nothing(written, same):
    assert _is_same(Decimal(written), MetricValue(0.9033383723859914)) is same


def test_replication_without_a_score_replaces_nothing(scored, capsys):
    written(scored / "again", subject(correct=None))
    entry = {**BASE, "run": None, "replication": "again"}
    document = {"schema_version": "1", "published": [entry]}
    (scored / "numbers.json").write_text(json.dumps(document))

    assert main(["accounting", "numbers.json"]) == EXIT_USAGE

    assert "a run with a value of the metric accuracy" in capsys.readouterr().err


def test_counts_are_by_status(accounted):
    counts = accounted(KEPT, {"run": None}, {"run": None})["counts"]

    assert counts == {
        "rescored": 0,
        "not_rescorable": 2,
        "unaffected": 1,
        "replicated": 0,
    }


def test_text_tells_old_new_and_both_versions(scored, capsys):
    capsys.readouterr()
    entry = {**BASE, **KEPT, "metric_version": "0", "value": 0.5}
    document = {"schema_version": "1", "published": [entry]}
    (scored / "numbers.json").write_text(json.dumps(document))

    assert main(["accounting", "numbers.json"]) == EXIT_DONE
    told = capsys.readouterr().out
    assert "paper: accuracy 0.5 (version 0)\n  rescored\n" in told
    assert "now 0.666667 (2/3), version 1; no change is stated" in told


def test_party_has_to_be_one_of_the_run(accounted, scored):
    found = accounted({**KEPT, "subject": "nobody"}, status=EXIT_USAGE)

    (violation,) = found["error"]["violations"]
    assert violation["where"] == "published[0].subject"
    assert violation["expected"] == "run has candidate"


BEYOND = (
    '{{"schema_version": "1", "published": [{{"place": "{place}", '
    '"metric": "accuracy", "metric_version": "1", "value": {value}, "run": null}}]}}'
)


def bad(tmp_path, text, name="numbers.yaml"):
    file = tmp_path / name
    file.write_text(text)
    return main(["accounting", str(file)])


def test_all_problems_of_a_list_are_told_at_once(tmp_path, capsys):
    text = """\
schema_version: "2"
published:
  - {place: a, metric: b, metric_version: 1.0, value: x, run: [], seen: 1}
  - {place: ""}
  - text
"""
    assert bad(tmp_path, text) == EXIT_USAGE
    told = capsys.readouterr().err
    for place in (
        "schema_version",
        "published[0].metric_version",
        "published[0].value",
        "published[0].run",
        "published[0].seen",
        "published[1].place",
        "published[1].metric",
        "published[2]",
    ):
        assert f"numbers.yaml, {place}\n" in told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        'schema_version: "1"\npublished: []\n',
        'schema_version: "1"\npublished: {a: 1}\n',
        'schema_version: "1"\npublished: [1]\nother: 2\n',
        "a: [",
        "value: .nan",
        BEYOND.format(place="p", value="9" * 400),
        BEYOND.format(place="\\udc00", value=1),
    ],
)
@pytest.mark.parametrize("name", ["numbers.yaml", "numbers.json"])
def test_file_that_is_no_list_is_a_usage_error(tmp_path, capsys, text, name):
    assert bad(tmp_path, text, name) == EXIT_USAGE
    assert capsys.readouterr().out == ""


def test_file_that_is_not_there_is_a_usage_error(tmp_path):
    assert main(["accounting", str(tmp_path / "gone.yaml")]) == EXIT_USAGE


def test_pipe_is_a_usage_error_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "numbers.yaml")

    assert main(["accounting", str(tmp_path / "numbers.yaml")]) == EXIT_USAGE


def test_broken_json_is_a_usage_error(tmp_path):
    assert bad(tmp_path, "{", "numbers.json") == EXIT_USAGE
