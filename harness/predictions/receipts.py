"""Generation receipts: which checkpoint answered which manifest, and with what.

A receipt lies beside its predictions under their name and `.manifest.json`. The
contract has three kinds: float checkpoints, int8 checkpoints (CPU only, with their
quantisation) and native chat, which names no manifest hash and is kept as it was read.
The first two have closed key sets, and a float receipt may not hold a key of the int8
one. A fourth kind is ours, for engines whose checkpoint nobody can hash.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from harness.canonical import Json
from harness.errors import EvidenceError, SourceError
from harness.predictions.digests import (
    is_sha256,
    require_sha256,
    verify_checkpoint,
)
from harness.predictions.generation import write_new_file
from harness.predictions.json_lines import text_bytes
from harness.regular_file import read_regular_file, require_regular
from harness.strict_json import StrictJsonError, decode_document

FLOAT_VERSION: Final = "barun-greedy-generation-v1"
INT8_VERSION: Final = "barun-greedy-generation-int8-v1"
NATIVE_CHAT_VERSION: Final = "barun-native-chat-generation-v1"
ENGINE_VERSION: Final = "fairtrial-generation-v1"
RECEIPT_SUFFIX: Final = ".manifest.json"


@dataclass(frozen=True, slots=True)
class Quantization:
    """What an int8 receipt says beyond a float one."""

    checkpoint_format: str
    quantization_manifest_sha256: str
    """Known to the operator beforehand, never taken from the checkpoint."""
    source_checkpoint_sha256: Json
    """One hash, or a map of file names to hashes."""
    qengine: str
    runtime: Mapping[str, Json]
    """Machine, system and library version."""


@dataclass(frozen=True, slots=True)
class GenerationReceipt:
    """A float or int8 receipt; raises ValueError where it contradicts itself."""

    checkpoint_dir: str
    checkpoint_sha256: Mapping[str, str]
    manifest: str
    manifest_sha256: str
    predictions: str
    predictions_sha256: str
    device: str
    dtype: str
    batch_size: int
    max_new_tokens: int
    examples: int
    generated: int
    truncated: int
    failed: int
    elapsed_seconds: float
    quantization: Quantization | None = None

    def __post_init__(self) -> None:
        for name in ("checkpoint_dir", "manifest", "predictions", "device", "dtype"):
            _require(isinstance(getattr(self, name), str), f"{name} is no text")
        for name in ("manifest_sha256", "predictions_sha256"):
            _require(is_sha256(getattr(self, name)), f"{name} is no SHA-256")
        _require(_is_hash_map(self.checkpoint_sha256), "checkpoint_sha256 is no map")
        for name in _COUNTS:
            count = getattr(self, name)
            _require(type(count) is int and count >= 0, f"{name} is no count")
        seconds = self.elapsed_seconds
        _require(
            type(seconds) in (int, float) and seconds >= 0, "elapsed_seconds is none"
        )
        if self.quantization is not None:
            _require(self.device == "cpu", "an int8 checkpoint runs on the CPU only")
            _check_quantization(self.quantization)

    @property
    def schema_version(self) -> str:
        """The kind of receipt."""
        return FLOAT_VERSION if self.quantization is None else INT8_VERSION

    def as_json(self) -> dict[str, Json]:
        """Return the receipt's object."""
        payload = asdict(self)
        quantization = payload.pop("quantization") or {}
        return {"schema_version": self.schema_version, **payload, **quantization}


@dataclass(frozen=True, slots=True)
class NativeChatReceipt:
    """A receipt of the native chat lane, as it was read."""

    payload: Mapping[str, Json]

    def as_json(self) -> dict[str, Json]:
        """Return the receipt's object."""
        return dict(self.payload)


@dataclass(frozen=True, slots=True)
class EngineReceipt:
    """What an engine answered; raises ValueError where it contradicts itself."""

    engine: str
    """The kind of engine."""
    model: Mapping[str, Json]
    """Which model it is said to be."""
    decoding_requested: Mapping[str, Json]
    decoding_applied: Mapping[str, Json]
    """`unknown` where nobody can tell."""
    manifest: str
    manifest_sha256: str
    predictions: str
    predictions_sha256: str
    examples: int
    generated: int
    truncated: int
    failed: int
    stopped: int
    """Those of the failed rows whose failure is none of the model's."""
    elapsed_seconds: float

    def __post_init__(self) -> None:
        for name in ("engine", "manifest", "predictions"):
            _require(isinstance(getattr(self, name), str), f"{name} is no text")
        for name in ("manifest_sha256", "predictions_sha256"):
            _require(is_sha256(getattr(self, name)), f"{name} is no SHA-256")
        for name in ("model", "decoding_requested", "decoding_applied"):
            _require(isinstance(getattr(self, name), Mapping), f"{name} is no object")
        for name in (*_COUNTS[2:], "stopped"):
            count = getattr(self, name)
            _require(type(count) is int and count >= 0, f"{name} is no count")
        seconds = self.elapsed_seconds
        _require(
            type(seconds) in (int, float) and seconds >= 0, "elapsed_seconds is none"
        )

    @property
    def schema_version(self) -> str:
        """The kind of receipt."""
        return ENGINE_VERSION

    def as_json(self) -> dict[str, Json]:
        """Return the receipt's object."""
        return {"schema_version": self.schema_version, **asdict(self)}


Receipt = GenerationReceipt | NativeChatReceipt | EngineReceipt

_COUNTS: Final = (
    "batch_size",
    "max_new_tokens",
    "examples",
    "generated",
    "truncated",
    "failed",
)
_FLOAT_KEYS: Final = frozenset(
    each.name for each in fields(GenerationReceipt) if each.name != "quantization"
)
_INT8_KEYS: Final = frozenset(each.name for each in fields(Quantization))
_ENGINE_KEYS: Final = frozenset(each.name for each in fields(EngineReceipt))


def receipt_path(predictions: Path) -> Path:
    """Return where the receipt of a predictions file lies."""
    return predictions.with_name(predictions.name + RECEIPT_SUFFIX)


def receipt_beside(predictions: Path) -> Path | None:
    """Return the receipt of a predictions file, None where nothing has its name.

    Raises UsageError (`eval_cli_invalid`) for a name that leads to no file.
    """
    path = receipt_path(predictions)
    if not os.path.lexists(path):
        return None
    require_regular(
        path,
        "the receipt beside the predictions is no file that can be read",
        "bring the receipt back, or remove what has its name",
    )
    return path


def write_receipt(predictions: Path, receipt: Receipt) -> Path:
    """Write a receipt beside its predictions and return its path.

    Raises UsageError (`eval_output_exists`) where there is one already.
    """
    path = receipt_path(predictions)
    text = json.dumps(
        receipt.as_json(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    write_new_file(path, [text_bytes(text + "\n")])
    return path


def read_receipt(path: Path) -> Receipt:
    """Read a receipt; raise EvidenceError (`eval_predictions_invalid`)."""
    try:
        return receipt_from_json(decode_document(read_regular_file(path)))
    except (StrictJsonError, ValueError) as error:
        raise EvidenceError(
            "eval_predictions_invalid",
            "a generation receipt does not have the form of its kind",
            where=path.name,
            expected=f"{FLOAT_VERSION}, {INT8_VERSION}, {NATIVE_CHAT_VERSION} or "
            f"{ENGINE_VERSION}",
            actual=str(error),
            recovery="bring back the receipt that the generator wrote",
        ) from None


def receipt_from_json(payload: Json) -> Receipt:
    """Build a receipt from its object; raise ValueError."""
    _require(isinstance(payload, dict), "a receipt is an object")
    version = payload.get("schema_version")
    if version == NATIVE_CHAT_VERSION:
        return NativeChatReceipt(payload)
    if version == ENGINE_VERSION:
        found = payload.keys() - {"schema_version"}
        differing = sorted(found ^ _ENGINE_KEYS)
        _require(not differing, f"keys that differ: {differing}")
        return EngineReceipt(**_only(payload, _ENGINE_KEYS))
    _require(version in (FLOAT_VERSION, INT8_VERSION), f"schema_version is {version!r}")
    keys = _FLOAT_KEYS | (_INT8_KEYS if version == INT8_VERSION else frozenset())
    found = payload.keys() - {"schema_version"}
    _require(found == keys, f"keys that differ: {sorted(found ^ keys)}")
    quantization = None
    if version == INT8_VERSION:
        quantization = Quantization(**_only(payload, _INT8_KEYS))
    return GenerationReceipt(**_only(payload, _FLOAT_KEYS), quantization=quantization)


def verify_receipt(receipt: Receipt, *, manifest: Path, predictions: Path) -> None:
    """Compare a receipt with the files at hand.

    A native chat receipt has no manifest hash, so only the hash of its predictions is
    compared, if it holds one. Raises SourceError (`eval_predictions_drift`).
    """
    if not isinstance(receipt, NativeChatReceipt):
        require_sha256(manifest, receipt.manifest_sha256, by="the receipt")
    _require_predictions(predictions, receipt)


def verify_predictions(predictions: Path) -> None:
    """Compare predictions with the receipt beside them, if there is one.

    Raises EvidenceError for a receipt that is none, SourceError
    (`eval_predictions_drift`) for predictions that it does not state.
    """
    path = receipt_beside(predictions)
    if path is not None:
        _require_predictions(predictions, read_receipt(path))


def _require_predictions(predictions: Path, receipt: Receipt) -> None:
    if isinstance(receipt, NativeChatReceipt):
        declared = receipt.payload.get("predictions_sha256")
    else:
        declared = receipt.predictions_sha256
    if isinstance(declared, str):
        require_sha256(predictions, declared, by="the receipt")


def verify_receipt_checkpoint(
    receipt: Receipt, folder: Path, *, quantization_manifest_sha256: str | None = None
) -> None:
    """Compare a checkpoint with its receipt, before anything of it is loaded.

    An int8 checkpoint also needs the hash of its quantisation manifest from outside.
    Raises SourceError (`eval_predictions_drift`).
    """
    if isinstance(receipt, NativeChatReceipt):
        raise _undeclared("a native chat receipt declares no checkpoint files")
    if isinstance(receipt, EngineReceipt):
        raise _undeclared(f"a receipt of {receipt.engine} declares no checkpoint files")
    if receipt.quantization is not None:
        declared = receipt.quantization.quantization_manifest_sha256
        if quantization_manifest_sha256 is None:
            raise _undeclared("an int8 checkpoint needs the hash of its manifest")
        if quantization_manifest_sha256 != declared:
            raise _undeclared(f"the receipt has another quantisation: {declared}")
    verify_checkpoint(folder, receipt.checkpoint_sha256)


def _undeclared(problem: str) -> SourceError:
    return SourceError(
        "eval_predictions_drift",
        problem,
        expected="hashes of the checkpoint that do not come from the checkpoint",
        recovery="leave --checkpoint out, or give --quantization-manifest-sha256",
    )


def _only(payload: Mapping[str, Json], keys: frozenset[str]) -> dict[str, Any]:
    return {name: payload[name] for name in keys}


def _check_quantization(quantization: Quantization) -> None:
    for name in ("checkpoint_format", "qengine"):
        _require(isinstance(getattr(quantization, name), str), f"{name} is no text")
    _require(
        is_sha256(quantization.quantization_manifest_sha256),
        "quantization_manifest_sha256 is no SHA-256",
    )
    source = quantization.source_checkpoint_sha256
    _require(
        is_sha256(source) or _is_hash_map(source), "source_checkpoint_sha256 is none"
    )
    _require(isinstance(quantization.runtime, Mapping), "runtime is no object")


def _is_hash_map(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and is_sha256(digest) for name, digest in value.items()
    )


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)
