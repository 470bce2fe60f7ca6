"""`fairtrial score classification`: recorded labels, classification v1."""

from __future__ import annotations

import argparse
from typing import Final

from harness.causes import EXIT_DONE
from harness.cli.score_answers import add_answer_arguments, show_answers
from harness.cli.score_figures import add_file

_SHARES: Final = {"accuracy": "correct", "macro_f1": ""}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_file(parser, "--labels", "L", "the vocabulary: a JSON array of strings")
    add_answer_arguments(parser, "classification")


def run(arguments: argparse.Namespace) -> int:
    """Score the rows and show the figures."""
    from harness.evaluations.of_files import AnswersRecorder
    from harness.predictions.answers import score_classification

    labels, rows = arguments.labels, arguments.rows
    scored = score_classification(
        labels,
        rows,
        arguments.output,
        metric=arguments.metric,
        watch=AnswersRecorder("classification", labels, rows),
    )
    show_answers(scored, arguments, _SHARES, {})
    return EXIT_DONE
