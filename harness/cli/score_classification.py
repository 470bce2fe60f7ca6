"""`fairtrial score classification`: recorded labels, classification v1."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from harness.causes import EXIT_DONE
from harness.cli.score_answers import add_answer_arguments, show

_SHARES: Final = {"accuracy": "correct", "macro_f1": ""}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "--labels",
        type=Path,
        required=True,
        metavar="L",
        help="the vocabulary: a JSON array of strings",
    )
    add_answer_arguments(parser, "classification")


def run(arguments: argparse.Namespace) -> int:
    """Score the rows and show the figures."""
    from harness.predictions.answers import score_classification

    scored = score_classification(
        arguments.labels, arguments.rows, arguments.output, metric=arguments.metric
    )
    show(scored, arguments, _SHARES, {})
    return EXIT_DONE
