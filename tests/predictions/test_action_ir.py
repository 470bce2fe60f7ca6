"""From files to files: bytes, declared hashes, and nothing left after a refusal."""

import dataclasses
import hashlib
import json

import pytest

from harness.errors import EvidenceError, SourceError, UsageError
from harness.predictions.action_ir import DeclaredHashes, score_files
from harness.predictions.digests import file_sha256
from harness.predictions.generation import PredictionLine, write_predictions
from harness.predictions.receipts import GenerationReceipt, write_receipt
from harness.scoring.action_ir.refusal import ActionIrError

PROMPT = "<system>\nTOOLS\nflash(): Flash once.\n<user>\nhello\n"
TARGET = '{"calls":[{"args":{},"tool":"flash"}],"decision":"CALL","mode":"SINGLE"}'


@pytest.fixture
def files(tmp_path):
    """A manifest of two rows and predictions: one right, one with a lone surrogate."""
    (tmp_path / "m.jsonl").write_text(
        "".join(
            json.dumps({"id": name, "prompt": PROMPT, "target": TARGET}) + "\n"
            for name in ("a", "b")
        )
    )
    write_predictions(
        tmp_path / "p.jsonl",
        [PredictionLine("b", "\ud800", 5, 1), PredictionLine("a", TARGET, 5, 20)],
    )
    return tmp_path


def score(files, **declared):
    return score_files(
        files / "m.jsonl", files / "p.jsonl", files / "out", DeclaredHashes(**declared)
    )


def receipt(files):
    (files / "model").mkdir()
    (files / "model/w.bin").write_bytes(b"weights")
    return GenerationReceipt(
        checkpoint_dir="model",
        checkpoint_sha256={"w.bin": hashlib.sha256(b"weights").hexdigest()},
        manifest="m.jsonl",
        manifest_sha256=file_sha256(files / "m.jsonl"),
        predictions="p.jsonl",
        predictions_sha256=file_sha256(files / "p.jsonl"),
        device="cpu",
        dtype="float32",
        batch_size=2,
        max_new_tokens=192,
        examples=2,
        generated=2,
        truncated=0,
        failed=0,
        elapsed_seconds=0.5,
    )


def names_in(files):
    return {path.name for path in files.iterdir()}


def test_files_are_written_in_manifest_order(files):
    found = score(files)

    samples = (files / "out/sample_scores.jsonl").read_bytes()
    records = [json.loads(line) for line in samples.splitlines()]
    assert [record["sample_id"] for record in records] == ["a", "b"]
    assert records[1]["prediction_error_code"] == "invalid_utf8"
    assert records[1]["prediction_raw"] == "\ud800"
    assert found.sample_scores_sha256 == hashlib.sha256(samples).hexdigest()


def test_aggregate_is_indented_sorted_and_hashed(files):
    found = score(files)

    data = (files / "out/aggregate.json").read_bytes()
    text = json.dumps(found.aggregate, indent=2, sort_keys=True) + "\n"
    assert data == text.encode()
    assert found.aggregate_sha256 == hashlib.sha256(data).hexdigest()
    assert found.aggregate["ast_exact_match"]["numerator"] == 1


def test_same_input_gives_the_same_bytes(files):
    first = score(files)

    again = score_files(files / "m.jsonl", files / "p.jsonl", files / "again")

    assert dataclasses.asdict(first) == dataclasses.asdict(again)


def test_declared_manifest_is_scored(files):
    found = score(files, manifest_sha256=file_sha256(files / "m.jsonl"))

    assert found.manifest_sha256 == file_sha256(files / "m.jsonl")


def test_other_manifest_is_refused_before_it_is_read(files):
    (files / "m.jsonl").write_text("broken")

    with pytest.raises(SourceError):
        score(files, manifest_sha256="0" * 64)

    assert "out" not in names_in(files)


def test_receipt_beside_the_predictions_is_compared(files):
    path = write_receipt(files / "p.jsonl", receipt(files))

    assert score(files, checkpoint=files / "model").receipt == path


@pytest.mark.parametrize("changed", ["m.jsonl", "p.jsonl", "model/w.bin"])
def test_file_that_is_not_the_receipts_is_refused(files, changed):
    write_receipt(files / "p.jsonl", receipt(files))
    with (files / changed).open("a") as stream:
        stream.write("\n")

    with pytest.raises(SourceError):
        score(files, checkpoint=files / "model")

    assert "out" not in names_in(files)


def test_hash_of_a_quantization_without_a_checkpoint_is_a_usage_error(files):
    with pytest.raises(UsageError, match="compared with nothing"):
        score(files, quantization_manifest_sha256="0" * 64)


def test_checkpoint_without_a_receipt_is_a_usage_error(files):
    with pytest.raises(UsageError, match="receipt"):
        score(files, checkpoint=files)


def test_existing_output_is_refused_first(files):
    (files / "out").mkdir()
    (files / "m.jsonl").write_text("broken")

    with pytest.raises(UsageError) as refused:
        score(files)

    assert refused.value.code == "eval_output_exists"


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("m.jsonl", b"{", EvidenceError),
        ("m.jsonl", b"", ActionIrError),
        ("p.jsonl", b'{"id":"a"}\n\n', EvidenceError),
        ("p.jsonl", b'{"id":"a"}\n{"id":"a"}\n', ActionIrError),
    ],
)
def test_refusal_leaves_nothing_behind(files, name, data, error):
    (files / name).write_bytes(data)
    before = names_in(files)

    with pytest.raises(error):
        score(files)

    assert names_in(files) == before
