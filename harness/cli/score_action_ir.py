"""`fairtrial score action-ir`: recorded Mobile Actions predictions, Action IR v1."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.causes import EXIT_DONE
from harness.cli.score_figures import Figure, add_file, add_result_arguments, show

if TYPE_CHECKING:
    from harness.canonical import Json
    from harness.predictions.action_ir import ScoredFiles

_SHOWN: Final = (
    ("policy_safe_executable_success", "policy-safe executable success"),
    ("ast_exact_match", "AST exact match"),
    ("parse_valid", "parse valid"),
    ("schema_valid", "schema valid"),
    ("decision_accuracy", "decision accuracy"),
    ("false_action", "false action"),
    ("clarification_accuracy", "clarification accuracy"),
    ("confirmation_accuracy", "confirmation accuracy"),
    ("abstention.f1", "abstention F1"),
    ("tool_macro_f1", "tool macro F1"),
    ("argument_key_macro_f1", "argument key macro F1"),
    ("argument_value_macro_f1", "argument value macro F1"),
    ("truncation", "truncated"),
    ("missing_prediction", "missing prediction"),
)
"""What the terminal shows, by its place in the aggregate."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_file(parser, "--manifest", "M", "prompts and gold")
    receipt = "recorded generations; the receipt beside them is compared"
    add_file(parser, "--predictions", "P", receipt)
    add_result_arguments(parser, "action-ir")
    parser.add_argument(
        "--manifest-sha256",
        type=_sha256,
        metavar="HEX",
        help="refuse any other manifest before it is read",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="compare this folder with the checkpoint hashes of the receipt",
    )
    parser.add_argument(
        "--quantization-manifest-sha256",
        type=_sha256,
        metavar="HEX",
        help="of an int8 checkpoint, known beforehand; goes with --checkpoint",
    )


def run(arguments: argparse.Namespace) -> int:
    """Score the files and show the figures."""
    from harness.evaluations.of_files import ActionIrRecorder
    from harness.predictions.action_ir import DeclaredHashes, score_files

    manifest, predictions = arguments.manifest, arguments.predictions
    recorder = ActionIrRecorder(manifest, predictions, arguments.metric)
    scored = score_files(
        manifest,
        predictions,
        arguments.output,
        DeclaredHashes(
            arguments.manifest_sha256,
            arguments.checkpoint,
            arguments.quantization_manifest_sha256,
        ),
        watch=recorder,
    )
    compared = "compared" if scored.receipt else "none beside the predictions"
    show(
        arguments,
        scored=f"{scored.aggregate['sample_count']} rows",
        figures=list(_figures(scored, recorder.metric)),
        notes=[
            f"receipt: {compared}",
            f"aggregate.json sha256 {scored.aggregate_sha256}",
        ],
        payload=_payload(scored),
    )
    return EXIT_DONE


def _payload(scored: ScoredFiles) -> dict[str, Json]:
    from harness.scoring.action_ir.unmeasured import measures, not_measured

    return {
        "aggregate_sha256": scored.aggregate_sha256,
        "failure_counts": scored.aggregate["failure_counts"],
        "manifest_sha256": scored.manifest_sha256,
        "measures": measures(scored.aggregate),
        "not_measured": not_measured(scored.aggregate),
        "predictions_sha256": scored.predictions_sha256,
        "receipt": scored.receipt and scored.receipt.name,
        "sample_count": scored.aggregate["sample_count"],
        "sample_scores_sha256": scored.sample_scores_sha256,
    }


def _figures(scored: ScoredFiles, primary: str) -> Iterator[Figure]:
    from harness.scoring.action_ir.unmeasured import measures

    found = measures(scored.aggregate)
    for place, title in _SHOWN:
        rate = scored.aggregate.get(place)
        parts = rate if isinstance(rate, dict) and "denominator" in rate else {}
        yield Figure(
            title,
            found[place],
            parts.get("numerator"),
            parts.get("denominator"),
            primary=place == primary,
        )


def _sha256(text: str) -> str:
    from harness.predictions.digests import is_sha256

    if not is_sha256(text.lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is no SHA-256 of 64 hex digits")
    return text.lower()
