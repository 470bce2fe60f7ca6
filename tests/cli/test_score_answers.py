"""`score json-records` and `score classification` as people type them."""

import json

import pytest

from harness.causes import EXIT_DONE, EXIT_SETUP, EXIT_USAGE
from harness.cli.main import main

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
RECORDS = [
    {"id": "r1", "gold": {"a": 1}, "raw": '{"a": 1}', "finish_reason": "stop"},
    {"id": "r2", "gold": {"a": "x"}, "raw": "{}", "finish_reason": "length"},
]


@pytest.fixture
def score(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "labels.json").write_text('["yes", "no"]')
    rows = "".join(json.dumps(row) + "\n" for row in RECORDS)
    (tmp_path / "records.jsonl").write_text(rows)
    (tmp_path / "answers.jsonl").write_text(
        '{"id": "r1", "gold": "yes", "raw": "Yes", "finish_reason": "stop"}\n'
    )
    files = {
        "json-records": ["--schema", "schema.json", "--rows", "records.jsonl"],
        "classification": ["--labels", "labels.json", "--rows", "answers.jsonl"],
    }

    def score(contract, *more):
        return main(["score", contract, *files[contract], "--output", "out", *more])

    return score


def test_records_show_counts_under_shares(score, capsys):
    assert score("json-records") == EXIT_DONE

    shown = capsys.readouterr().out
    assert "2 rows scored into out" in shown
    assert "whole record accuracy            0.5000  1/2  (primary)" in shown


def test_labels_show_their_metrics(score, capsys):
    assert score("classification", "--metric", "macro_f1") == EXIT_DONE

    shown = capsys.readouterr().out
    assert "macro f1                         1.0000  (primary)" in shown


@pytest.mark.parametrize("contract", ["json-records", "classification"])
def test_json_holds_the_aggregate_and_the_unicode_version(score, contract, capsys):
    score(contract, "--json")

    payload = json.loads(capsys.readouterr().out)
    with open("out/aggregate.json", encoding="utf-8") as file:
        assert payload.items() >= json.load(file).items()
    assert payload["unidata_version"]


def test_gold_is_checked_when_asked(score, capsys):
    score("json-records", "--check-gold", "--json")

    shown = capsys.readouterr()
    assert json.loads(shown.out)["gold_violations"] == ["r2"]
    assert "gold of 1 rows does not satisfy the schema: r2" in shown.err


def test_schema_that_leads_nowhere_is_said_on_stderr(score, tmp_path, capsys):
    schema = {"properties": {"a": {"$ref": "#/nowhere"}}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))

    assert score("json-records") == EXIT_DONE
    assert "cannot be followed to an end on 1 rows" in capsys.readouterr().err


def test_metric_of_another_task_is_a_usage_error(score, capsys):
    assert score("classification", "--metric", "parseable_rate") == EXIT_USAGE
    assert "choose from accuracy, macro_f1" in capsys.readouterr().err


def test_schema_that_cannot_be_used_is_a_usage_error(score, tmp_path):
    (tmp_path / "schema.json").write_text('{"type": "text"}')

    assert score("json-records") == EXIT_USAGE


def test_absent_file_is_a_usage_error(score, tmp_path):
    (tmp_path / "labels.json").unlink()

    assert score("classification") == EXIT_USAGE


def test_row_that_cannot_be_scored_is_a_refusal(score, tmp_path):
    (tmp_path / "answers.jsonl").write_text('{"id": "r1", "gold": {}, "raw": null}\n')

    assert score("classification") == EXIT_SETUP


def test_second_scoring_needs_another_output(score):
    score("json-records")

    assert score("json-records") == EXIT_USAGE
