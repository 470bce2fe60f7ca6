"""Scores recorded predictions of Mobile Actions rows, from files to files.

Every hash that somebody declared is compared first; then the rows are scored; the
output folder appears only when both of its files are complete. The receipt beside the
predictions, where there is one, counts as a declaration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.errors import UsageError
from harness.predictions.digests import file_sha256, require_sha256
from harness.predictions.json_lines import (
    line_bytes,
    read_rows,
    text_bytes,
)
from harness.predictions.output_folder import new_folder, require_absent
from harness.predictions.receipts import (
    read_receipt,
    receipt_beside,
    receipt_path,
    verify_receipt,
    verify_receipt_checkpoint,
)
from harness.predictions.watch import ScoringWatch, watched
from harness.regular_file import require_file
from harness.scoring.action_ir.mobile import MobileScorer

SAMPLE_SCORES: Final = "sample_scores.jsonl"
AGGREGATE: Final = "aggregate.json"


@dataclass(frozen=True, slots=True)
class DeclaredHashes:
    """What the caller knows beforehand; None where nothing is declared."""

    manifest_sha256: str | None = None
    checkpoint: Path | None = None
    """Folder to compare with the receipt's checkpoint hashes."""
    quantization_manifest_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class ScoredFiles:
    """The result of one scoring and what it was made from; hashes are 64 hex digits."""

    aggregate: dict[str, Json]
    aggregate_sha256: str
    sample_scores_sha256: str
    manifest_sha256: str
    predictions_sha256: str
    receipt: Path | None
    """The receipt that was compared, None where there is none."""


def score_files(
    manifest: Path,
    predictions: Path,
    output: Path,
    declared: DeclaredHashes = DeclaredHashes(),
    *,
    watch: ScoringWatch[ScoredFiles] | None = None,
) -> ScoredFiles:
    """Write `sample_scores.jsonl` and `aggregate.json` into a new folder.

    `watch` sees every row and the folder. Raises UsageError for files that cannot be
    read and an output that exists, SourceError where a declared hash differs,
    EvidenceError for a broken line and ActionIrError for rows that cannot be scored.
    Nothing is left behind then.
    """
    require_file(manifest, "--manifest")
    require_file(predictions, "--predictions")
    require_absent(output)
    receipt = _verify(manifest, predictions, declared)
    manifest_sha256, predictions_sha256 = map(file_sha256, (manifest, predictions))
    with new_folder(output) as folder:
        scorer = MobileScorer(read_rows(predictions))
        scores = scorer.scores(watched(watch, read_rows(manifest), _told))
        samples = _write(
            folder / SAMPLE_SCORES, (line_bytes(score.as_record()) for score in scores)
        )
        result = scorer.aggregate()
        total = _write(folder / AGGREGATE, [aggregate_bytes(result)])
        scored = ScoredFiles(
            aggregate=result,
            aggregate_sha256=total,
            sample_scores_sha256=samples,
            manifest_sha256=manifest_sha256,
            predictions_sha256=predictions_sha256,
            receipt=receipt,
        )
        if watch is not None:
            watch.finish(folder, scored)
    return scored


def _told(row: Mapping[str, Json]) -> tuple[Json, Json, Json]:
    return row.get("id"), row.get("target"), row.get("prompt")


def aggregate_bytes(aggregate: dict[str, Json]) -> bytes:
    """Return the bytes of `aggregate.json`."""
    text = json.dumps(
        aggregate, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    return text_bytes(text + "\n")


def _verify(manifest: Path, predictions: Path, declared: DeclaredHashes) -> Path | None:
    if declared.manifest_sha256 is not None:
        require_sha256(manifest, declared.manifest_sha256, by="--manifest-sha256")
    if declared.quantization_manifest_sha256 and declared.checkpoint is None:
        raise UsageError(
            "eval_cli_invalid",
            "--quantization-manifest-sha256 is compared with nothing",
            expected="--checkpoint beside it: the folder that it is of",
            recovery="name the checkpoint, or leave the hash out",
        )
    path = receipt_beside(predictions)
    if path is None:
        if declared.checkpoint is not None:
            raise UsageError(
                "eval_cli_invalid",
                "--checkpoint needs a receipt beside the predictions",
                where=str(receipt_path(predictions)),
                recovery="bring the receipt, or leave --checkpoint out",
            )
        return None
    receipt = read_receipt(path)
    verify_receipt(receipt, manifest=manifest, predictions=predictions)
    if declared.checkpoint is not None:
        verify_receipt_checkpoint(
            receipt,
            declared.checkpoint,
            quantization_manifest_sha256=declared.quantization_manifest_sha256,
        )
    return path


def _write(path: Path, pieces: Iterable[bytes]) -> str:
    digest = sha256()
    with path.open("wb") as stream:
        for piece in pieces:
            digest.update(piece)
            stream.write(piece)
    return digest.hexdigest()
