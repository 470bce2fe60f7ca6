"""What `score json-records` and `score classification` take and show alike."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.cli.score_figures import Figure, add_file, add_result_arguments, show

if TYPE_CHECKING:
    from harness.canonical import Json
    from harness.predictions.answers import ScoredAnswers


def add_answer_arguments(parser: argparse.ArgumentParser, task: str) -> None:
    """Declare the rows, then what every contract has."""
    rows = "JSON lines: id, gold, raw (null for no output), finish_reason"
    add_file(parser, "--rows", "R", rows)
    add_result_arguments(parser, task)


def show_answers(
    scored: ScoredAnswers,
    arguments: argparse.Namespace,
    shares: Mapping[str, str],
    more: Mapping[str, Json],
) -> None:
    """Print the figures; `shares` names the count under each share, if it has one."""
    show(
        arguments,
        scored=f"{scored.aggregate['metrics']['rows']} rows",
        figures=list(_figures(scored.aggregate, shares)),
        notes=[f"aggregate.json sha256 {scored.aggregate_sha256}"],
        payload={
            **scored.aggregate,
            **more,
            "aggregate_sha256": scored.aggregate_sha256,
            "declaration_sha256": scored.declaration_sha256,
            "rows_sha256": scored.rows_sha256,
            "sample_scores_sha256": scored.sample_scores_sha256,
        },
    )


def _figures(
    aggregate: Mapping[str, Json], shares: Mapping[str, str]
) -> Iterator[Figure]:
    metrics, counts = aggregate["metrics"], aggregate["counts"]
    for name, value in metrics.items():
        if name == "rows" or isinstance(value, dict):
            continue
        part = counts[shares[name]] if shares.get(name) else None
        yield Figure(
            name.replace("_", " "),
            value,
            part,
            None if part is None else metrics["rows"],
            primary=name == aggregate["primary"]["metric"],
        )
    for name, count in aggregate["companions"].items():
        if count:
            yield Figure(name.replace("_", " "), count)
