"""Every case of `json-records/`: verdicts, fields, counts, metrics, and the files.

Counts are integers and compare exactly; shares compare at 1e-12. Fields compare in
their order too. Every schema is judged both ways, the short one and the library's.
"""

import json
import math

from harness.predictions.answers import score_classification, score_json_records
from harness.predictions.record_schema import compile_schema
from harness.scoring.answers import AnswerRow
from harness.scoring.classification.aggregate import LabelAggregator
from harness.scoring.classification.label import METRIC_VERSION as LABEL_METRIC
from harness.scoring.classification.label import Vocabulary, score_label
from harness.scoring.json_record.aggregate import RecordAggregator
from harness.scoring.json_record.parse import UnparseableError, parse_answer
from harness.scoring.json_record.record import METRIC_VERSION as RECORD_METRIC
from harness.scoring.json_record.record import score_record
from tests.parity.folders import fixture_path

FOLDER = "json-records"
CASES = {
    "record_case": "parity.jsonl",
    "label_case": "classification.jsonl",
    "aggregate_case": "aggregates.jsonl",
}
TOLERANCE = 1e-12


def pytest_generate_tests(metafunc):
    for name, file in CASES.items():
        if name in metafunc.fixturenames:
            path = fixture_path(metafunc.config, FOLDER, file)
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            cases = [json.loads(line) for line in text.split("\n") if line.strip()]
            metafunc.parametrize(name, cases, ids=[case["id"] for case in cases])


def assert_close(found, expected, where="metrics"):
    """Compare members that `expected` names: integers exactly, shares closely."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys(), where
        for name, value in expected.items():
            assert_close(found[name], value, f"{where}.{name}")
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=0, abs_tol=TOLERANCE), where
    else:
        assert type(found) is type(expected), where
        assert found == expected, where


def rows_of(case):
    return [
        AnswerRow(row["id"], row["gold"], row["raw"], row["finish_reason"])
        for row in case["rows"]
    ]


def aggregate_of(case):
    """Return the aggregate for the first metric that can be the primary one."""
    if case["task"] == "json":
        schema = compile_schema(case["schema"])
        records = RecordAggregator(schema.document)
        for row in rows_of(case):
            records.add(row, score_record(row.raw, row.gold, schema))
        return records
    vocabulary = Vocabulary(case["labels"])
    labels = LabelAggregator()
    for row in rows_of(case):
        labels.add(row, score_label(row.raw, row.gold, vocabulary))
    return labels


def test_answer_is_judged_as_the_contract_says(record_case):
    schema = compile_schema(record_case["schema"])

    found = score_record(record_case["raw"], record_case["gold"], schema).as_record()

    expected = record_case["expected"]
    assert found == expected
    assert list(found["fields"]) == list(expected["fields"])


def test_library_agrees_with_the_short_way(record_case):
    try:
        value = parse_answer(record_case["raw"] or "")
    except UnparseableError:
        return
    schema = compile_schema(record_case["schema"])

    verdict = schema.judge_by_library(value)

    assert (verdict == "valid") == record_case["expected"]["schema_valid"]


def test_label_is_judged_as_the_contract_says(label_case):
    found = score_label(
        label_case["raw"], label_case["gold"], Vocabulary(label_case["labels"])
    )

    assert found.as_record() == label_case["expected"]


def test_population_has_the_contracts_counts_and_metrics(aggregate_case):
    found = aggregate_of(aggregate_case).result()

    assert found["metric_version"] == aggregate_case["metric_version"]
    assert_close(found["counts"], aggregate_case["counts"], "counts")
    assert_close(found["metrics"], aggregate_case["expected"])
    for name in ("fields", "classes"):
        assert found["counts"].get(name) == aggregate_case["counts"].get(name)


def test_any_selectable_metric_can_be_the_primary_one(aggregate_case):
    found = {}
    for name in aggregate_case["primary"]:
        aggregator = aggregate_of(aggregate_case)
        aggregator.metric = name
        primary = aggregator.result()["primary"]
        assert primary["metric"] == name
        found[name] = primary["value"]

    assert_close(found, aggregate_case["primary"], "primary")


def test_files_hold_what_memory_does(aggregate_case, tmp_path):
    task = aggregate_case["task"]
    declared = aggregate_case["schema" if task == "json" else "labels"]
    (tmp_path / "declared.json").write_text(json.dumps(declared))
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in aggregate_case["rows"])
    )
    score = score_json_records if task == "json" else score_classification

    score(tmp_path / "declared.json", tmp_path / "rows.jsonl", tmp_path / "out")

    written = json.loads((tmp_path / "out/aggregate.json").read_bytes())
    lines = (tmp_path / "out/sample_scores.jsonl").read_text().splitlines()
    assert written == aggregate_of(aggregate_case).result()
    assert [json.loads(line)["id"] for line in lines] == [
        row["id"] for row in aggregate_case["rows"]
    ]


def test_metric_versions_are_those_of_the_contract():
    assert (RECORD_METRIC, LABEL_METRIC) == ("2", "1")
