"""`fairtrial score action-ir`: recorded Mobile Actions predictions, Action IR v1."""

from __future__ import annotations

import argparse
import json
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.causes import EXIT_DONE

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
    parser.add_argument(
        "--manifest", type=Path, required=True, metavar="M", help="prompts and gold"
    )
    parser.add_argument(
        "--predictions",
        type=Path,
        required=True,
        metavar="P",
        help="recorded generations; the receipt beside them is compared",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="a new folder"
    )
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
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Score the files and show the figures."""
    from harness.predictions.action_ir import DeclaredHashes, score_files

    scored = score_files(
        arguments.manifest,
        arguments.predictions,
        arguments.output,
        DeclaredHashes(
            arguments.manifest_sha256,
            arguments.checkpoint,
            arguments.quantization_manifest_sha256,
        ),
    )
    if arguments.json:
        print(json.dumps(_payload(scored), indent=2, sort_keys=True))
    else:
        print(_text(scored, arguments.output))
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
        "unidata_version": unicodedata.unidata_version,
    }


def _text(scored: ScoredFiles, output: Path) -> str:
    from harness.scoring.action_ir.unmeasured import measures

    aggregate, found = scored.aggregate, measures(scored.aggregate)
    compared = "compared" if scored.receipt else "none beside the predictions"
    return "\n".join(
        [
            f"{aggregate['sample_count']} rows scored into {output}",
            *(
                f"  {title:32} {_figure(found[place], aggregate.get(place))}"
                for place, title in _SHOWN
            ),
            f"receipt: {compared}",
            f"aggregate.json sha256 {scored.aggregate_sha256}",
        ]
    )


def _figure(value: float | None, rate: Json) -> str:
    if value is None:
        return "not measured"
    if isinstance(rate, dict) and "denominator" in rate:
        return f"{value:.4f}  {rate['numerator']}/{rate['denominator']}"
    return f"{value:.4f}"


def _sha256(text: str) -> str:
    from harness.predictions.digests import is_sha256

    if not is_sha256(text.lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is no SHA-256 of 64 hex digits")
    return text.lower()
