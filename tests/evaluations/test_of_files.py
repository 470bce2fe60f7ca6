"""What `fairtrial score` records beside its files, for each contract."""

import json
from pathlib import Path

import pytest

from harness.canonical import hash_file
from harness.causes import EXIT_DONE, EXIT_USAGE
from harness.cli.main import main
from harness.evaluations.pairs import Label, judge
from harness.evaluations.stored import read_stored
from harness.predictions.receipts import (
    EngineReceipt,
    GenerationReceipt,
    write_receipt,
)
from tests.evaluations.records import entry

FIXTURES = Path(__file__).parent.parent / "fixtures/action-ir/published"
MANIFEST = FIXTURES / "manifest_sample.jsonl"
PREDICTIONS = FIXTURES / "predictions_sample_candidate-v2.jsonl"
ROWS = [
    {"id": "r1", "gold": "yes", "raw": "Yes", "finish_reason": "stop"},
    {"id": "r2", "gold": "no", "raw": "yes", "finish_reason": "stop"},
    {"id": "r3", "gold": "no", "raw": None, "finish_reason": None},
]


@pytest.fixture
def labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.json").write_text('["yes", "no"]')

    def scored(output, rows=ROWS, *words):
        file = tmp_path / f"{output}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        words = ["--labels", "labels.json", "--rows", str(file), *words]
        assert (
            main(["score", "classification", *words, "--output", output]) == EXIT_DONE
        )
        return tmp_path / output

    return scored


def test_record_names_figures_files_and_versions(labels, tmp_path):
    record = read_stored(labels("out")).payload

    (subject,) = record["subjects"]
    assert subject["metrics"]["accuracy"] == {
        "value": 1 / 3,
        "numerator": 1,
        "denominator": 3,
    }
    assert record["kind"] == "score"
    assert record["scorer"]["metric_version"] == "1"
    assert record["protocol"]["fields"]["rows"]["n"] == 3
    assert record["artifacts"] == {
        name: hash_file(tmp_path / "out" / name)
        for name in ("aggregate.json", "sample_scores.jsonl")
    }
    assert record["inputs"]["rows"]["content_hash"] == hash_file(tmp_path / "out.jsonl")


def test_what_files_do_not_tell_is_unknown(labels):
    record = read_stored(labels("out")).payload

    assert record["protocol"]["fields"]["prompts"] == {"stated": "unknown"}
    assert record["protocol"]["fields"]["decoding"] == {"stated": "unknown"}
    assert record["subjects"][0]["conditions"] == {}
    assert record["rescorable"]["reasons"][0]["code"] == "raw_output_missing"


def test_other_answers_to_the_same_rows_are_cross_runtime(labels):
    other = [{**row, "raw": row["gold"]} for row in ROWS]

    pair = judge(entry(labels("a")), entry(labels("b", other)))

    assert pair.label is Label.CROSS_RUNTIME
    assert "prompts" in pair.unknown_fields
    assert "decoding" in pair.unknown_fields


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: rows[::-1],
        lambda rows: rows[:2],
        lambda rows: [{**rows[0], "gold": "no"}, *rows[1:]],
        lambda rows: [{**rows[0], "id": "other"}, *rows[1:]],
    ],
)
def test_other_rows_are_incompatible(labels, edit):
    pair = judge(entry(labels("a")), entry(labels("b", edit(ROWS))))

    assert [reason.code for reason in pair.reasons] == ["rows"]


def test_other_metric_is_incompatible(labels):
    other = labels("b", ROWS, "--metric", "macro_f1")

    pair = judge(entry(labels("a")), entry(other))

    assert [reason.code for reason in pair.reasons] == ["metric"]


def test_other_labels_are_incompatible(labels, tmp_path):
    first = entry(labels("a"))
    (tmp_path / "labels.json").write_text('["yes", "no", "maybe"]')

    pair = judge(first, entry(labels("b")))

    assert [reason.code for reason in pair.reasons] == ["contract"]


def action_ir(tmp_path, receipt=None):
    predictions = tmp_path / "p.jsonl"
    predictions.write_bytes(PREDICTIONS.read_bytes())
    if receipt is not None:
        write_receipt(predictions, receipt(predictions))
    output = tmp_path / "out"
    words = ["--manifest", str(MANIFEST), "--predictions", str(predictions)]
    assert main(["score", "action-ir", *words, "--output", str(output)]) == EXIT_DONE
    return read_stored(output).payload


def hashes(predictions):
    return {
        "manifest": MANIFEST.name,
        "manifest_sha256": hash_file(MANIFEST).removeprefix("sha256:"),
        "predictions": predictions.name,
        "predictions_sha256": hash_file(predictions).removeprefix("sha256:"),
        "examples": 7,
        "generated": 7,
        "truncated": 0,
        "failed": 0,
        "elapsed_seconds": 1.0,
    }


def test_receipt_of_a_checkpoint_tells_model_device_and_cap(tmp_path):
    record = action_ir(
        tmp_path,
        lambda predictions: GenerationReceipt(
            **hashes(predictions),
            checkpoint_dir="best",
            checkpoint_sha256={"model.safetensors": "a" * 64},
            device="cpu",
            dtype="float32",
            batch_size=8,
            max_new_tokens=64,
        ),
    )

    (subject,) = record["subjects"]
    assert subject["model"]["checkpoint"] == "best"
    assert subject["conditions"]["device"]["values"] == ["cpu"]
    assert subject["conditions"]["device"]["rows"] == [7]
    assert subject["decoding"]["requested"]["max_tokens"] == 64
    assert subject["decoding"]["requested"]["num_beams"] == "unknown"
    assert subject["decoding"]["applied"] is None


def test_receipt_of_an_engine_tells_what_was_applied(tmp_path):
    record = action_ir(
        tmp_path,
        lambda predictions: EngineReceipt(
            **hashes(predictions),
            engine="chat_http",
            model={"model_identity": "m"},
            decoding_requested={"max_tokens": 5},
            decoding_applied={"max_tokens": "unknown"},
            stopped=0,
        ),
    )

    (subject,) = record["subjects"]
    assert subject["conditions"]["engine"]["values"] == ["chat_http"]
    assert record["protocol"]["fields"]["decoding"] == {"max_tokens": 5}
    assert subject["decoding"]["applied"] == {"max_tokens": "unknown"}


def test_no_receipt_tells_nothing_of_the_model(tmp_path):
    (subject,) = action_ir(tmp_path)["subjects"]

    assert subject["model"] == {}
    assert subject["metrics"]["ast_exact_match"]["numerator"] == 6
    assert subject["metrics"]["ast_exact_match"]["denominator"] == 7


def test_metric_that_action_ir_does_not_have_is_a_usage_error(tmp_path, capsys):
    words = ["--manifest", str(MANIFEST), "--predictions", str(PREDICTIONS)]
    output = tmp_path / "out"
    words += ["--output", str(output), "--metric", "f1"]

    assert main(["score", "action-ir", *words]) == EXIT_USAGE
    assert "choose from policy_safe_executable_success" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    "row",
    [
        {"id": "\ud800", "gold": {"a": 1}, "raw": None, "finish_reason": None},
        {"id": "r", "gold": {"a": "\ud800"}, "raw": "{}", "finish_reason": "stop"},
        {"id": "r", "gold": {"a": float("nan")}, "raw": "x", "finish_reason": "\udfff"},
    ],
)
def test_row_that_no_strict_json_holds_is_scored_and_recorded(tmp_path, row):
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    files = ["--schema", tmp_path / "schema.json", "--rows", tmp_path / "rows.jsonl"]

    words = map(str, [*files, "--output", tmp_path / "out"])

    assert main(["score", "json-records", *words]) == EXIT_DONE
    assert read_stored(tmp_path / "out").payload["protocol"]["fields"]["rows"]["n"] == 1
