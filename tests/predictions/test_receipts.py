"""Receipts: four kinds, closed keys, and what they declare."""

import hashlib
import json
import os

import pytest

from harness.errors import EvidenceError, SourceError, UsageError
from harness.predictions.digests import file_sha256
from harness.predictions.receipts import (
    EngineReceipt,
    GenerationReceipt,
    NativeChatReceipt,
    Quantization,
    read_receipt,
    receipt_from_json,
    receipt_path,
    verify_predictions,
    verify_receipt,
    verify_receipt_checkpoint,
    write_receipt,
)

HASH = "ab" * 32
QUANTIZATION = {
    "checkpoint_format": "int8-v1",
    "quantization_manifest_sha256": HASH,
    "source_checkpoint_sha256": {"model.bin": HASH},
    "qengine": "fbgemm",
    "runtime": {"machine": "x86_64", "system": "Linux", "torch": "2.7"},
}
NATIVE = {"schema_version": "barun-native-chat-generation-v1", "decoding": "greedy"}


def receipt(**fields):
    return GenerationReceipt(
        **{
            "checkpoint_dir": "models/small",
            "checkpoint_sha256": {"model.bin": HASH},
            "manifest": "dev.jsonl",
            "manifest_sha256": HASH,
            "predictions": "predictions.jsonl",
            "predictions_sha256": HASH,
            "device": "cpu",
            "dtype": "float32",
            "batch_size": 16,
            "max_new_tokens": 192,
            "examples": 2,
            "generated": 1,
            "truncated": 0,
            "failed": 1,
            "elapsed_seconds": 1.5,
        }
        | fields
    )


def int8(**fields):
    return receipt(quantization=Quantization(**(QUANTIZATION | fields)))


@pytest.fixture
def files(tmp_path):
    """A manifest, predictions and a checkpoint folder with one file."""
    for name in ("dev.jsonl", "predictions.jsonl"):
        (tmp_path / name).write_text(name)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.bin").write_bytes(b"weights")
    return tmp_path


def of_files(files, **fields):
    return receipt(
        manifest_sha256=file_sha256(files / "dev.jsonl"),
        predictions_sha256=file_sha256(files / "predictions.jsonl"),
        checkpoint_sha256={"model.bin": hashlib.sha256(b"weights").hexdigest()},
        **fields,
    )


@pytest.mark.parametrize(
    "written", [receipt(), int8(), NativeChatReceipt(NATIVE)], ids=str
)
def test_receipt_is_read_back(tmp_path, written):
    path = write_receipt(tmp_path / "predictions.jsonl", written)

    assert path.name == "predictions.jsonl.manifest.json"
    assert read_receipt(path) == written


def test_receipt_is_indented_and_sorted(tmp_path):
    path = write_receipt(tmp_path / "p.jsonl", receipt())

    text = path.read_text()
    payload = receipt().as_json()
    assert text == json.dumps(payload, indent=2, sort_keys=True) + "\n"
    assert payload["schema_version"] == "barun-greedy-generation-v1"
    assert len(payload) == 16


def test_int8_receipt_has_its_own_keys_beside_the_others():
    payload = int8().as_json()

    assert payload["schema_version"] == "barun-greedy-generation-int8-v1"
    assert payload.keys() - receipt().as_json().keys() == QUANTIZATION.keys()


def test_receipt_is_not_replaced(tmp_path):
    write_receipt(tmp_path / "p.jsonl", receipt())

    with pytest.raises(UsageError):
        write_receipt(tmp_path / "p.jsonl", receipt())


@pytest.mark.parametrize(
    "fields",
    [
        {"device": 5},
        {"manifest_sha256": "x"},
        {"checkpoint_sha256": {"model.bin": "x"}},
        {"checkpoint_sha256": HASH},
        {"examples": True},
        {"failed": -1},
        {"elapsed_seconds": "1"},
        {"quantization": Quantization(**QUANTIZATION), "device": "cuda"},
        {"quantization": Quantization(**(QUANTIZATION | {"qengine": None}))},
        {"quantization": Quantization(**(QUANTIZATION | {"runtime": "x"}))},
        {
            "quantization": Quantization(
                **(QUANTIZATION | {"source_checkpoint_sha256": "x"})
            )
        },
        {
            "quantization": Quantization(
                **(QUANTIZATION | {"quantization_manifest_sha256": "x"})
            )
        },
    ],
)
def test_receipt_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ValueError, match=r"is n|CPU"):
        receipt(**fields)


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"schema_version": "v9"},
        receipt().as_json() | {"qengine": "fbgemm"},
        {k: v for k, v in int8().as_json().items() if k != "qengine"},
        {k: v for k, v in receipt().as_json().items() if k != "device"},
    ],
    ids=["list", "version", "float with int8 key", "int8 without", "without"],
)
def test_receipt_with_other_keys_is_refused(payload):
    with pytest.raises(ValueError, match=r"receipt|schema_version|keys"):
        receipt_from_json(payload)


@pytest.mark.parametrize("text", ["{", "[]", '{"a":1,"a":1}'])
def test_broken_receipt_file_is_refused(tmp_path, text):
    path = receipt_path(tmp_path / "p.jsonl")
    path.write_text(text)

    with pytest.raises(EvidenceError) as refused:
        read_receipt(path)

    assert refused.value.code == "eval_predictions_invalid"


def verify(found, files):
    verify_receipt(
        found,
        manifest=files / "dev.jsonl",
        predictions=files / "predictions.jsonl",
    )


def test_receipt_of_these_files_passes(files):
    verify(of_files(files), files)
    verify_receipt_checkpoint(of_files(files), files / "model")


@pytest.mark.parametrize("changed", ["dev.jsonl", "predictions.jsonl"])
def test_changed_file_is_refused(files, changed):
    found = of_files(files)
    (files / changed).write_text("other")

    with pytest.raises(SourceError, match=changed):
        verify(found, files)


def test_changed_checkpoint_is_refused(files):
    found = of_files(files)
    (files / "model/model.bin").write_bytes(b"other")

    with pytest.raises(SourceError, match="changed"):
        verify_receipt_checkpoint(found, files / "model")


def test_native_chat_receipt_is_held_to_the_hash_it_has(files):
    predictions = file_sha256(files / "predictions.jsonl")
    verify(NativeChatReceipt(NATIVE), files)
    verify(NativeChatReceipt(NATIVE | {"predictions_sha256": predictions}), files)

    with pytest.raises(SourceError):
        verify(NativeChatReceipt(NATIVE | {"predictions_sha256": HASH}), files)
    with pytest.raises(SourceError, match="declares no checkpoint"):
        verify_receipt_checkpoint(NativeChatReceipt(NATIVE), files / "model")


def test_int8_checkpoint_needs_a_hash_from_outside(files):
    found = of_files(files, quantization=Quantization(**QUANTIZATION))
    folder = files / "model"

    verify_receipt_checkpoint(found, folder, quantization_manifest_sha256=HASH)
    with pytest.raises(SourceError, match="needs the hash"):
        verify_receipt_checkpoint(found, folder)
    with pytest.raises(SourceError, match="another quantisation"):
        verify_receipt_checkpoint(found, folder, quantization_manifest_sha256="0" * 64)


def engine_receipt(**fields):
    return EngineReceipt(
        **{
            "engine": "chat_http",
            "model": {"canonical_id": "local:m@provider_managed"},
            "decoding_requested": {"temperature": 0.0},
            "decoding_applied": {"temperature": "unknown"},
            "manifest": "manifest.jsonl",
            "manifest_sha256": HASH,
            "predictions": "predictions.jsonl",
            "predictions_sha256": HASH,
            "examples": 3,
            "generated": 2,
            "truncated": 1,
            "failed": 1,
            "stopped": 1,
            "elapsed_seconds": 2,
        }
        | fields
    )


def test_receipt_of_an_engine_comes_back_as_it_was_written():
    written = engine_receipt()

    assert receipt_from_json(written.as_json()) == written


@pytest.mark.parametrize(
    "fields",
    [{"manifest_sha256": "x"}, {"stopped": -1}, {"model": "m"}, {"examples": True}],
)
def test_receipt_of_an_engine_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        engine_receipt(**fields)


def test_receipt_of_an_engine_has_no_other_keys():
    with pytest.raises(ValueError, match="more"):
        receipt_from_json({**engine_receipt().as_json(), "more": 1})


def test_receipt_of_an_engine_declares_no_checkpoint(tmp_path):
    with pytest.raises(SourceError, match="chat_http"):
        verify_receipt_checkpoint(engine_receipt(), tmp_path)


def test_receipt_of_an_engine_is_compared_with_its_files(tmp_path):
    manifest, predictions = tmp_path / "m.jsonl", tmp_path / "p.jsonl"
    manifest.write_text("{}")
    predictions.write_text("{}")
    declared = engine_receipt(manifest_sha256=file_sha256(manifest))

    with pytest.raises(SourceError):
        verify_receipt(declared, manifest=manifest, predictions=predictions)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to nothing"])
def test_receipt_that_is_no_file_is_refused_and_never_waited_for(tmp_path, kind):
    predictions = tmp_path / "p.jsonl"
    predictions.touch()
    path = receipt_path(predictions)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nothing")

    with pytest.raises(UsageError, match="receipt beside the predictions"):
        verify_predictions(predictions)
