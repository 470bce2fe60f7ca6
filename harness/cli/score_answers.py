"""What `score json-records` and `score classification` take and show alike."""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.canonical import Json
    from harness.predictions.answers import ScoredAnswers


def add_answer_arguments(parser: argparse.ArgumentParser, task: str) -> None:
    """Declare the rows, the output, the metric and the form of what is shown."""
    from harness.scoring.answers import SELECTABLE

    names = SELECTABLE[task]
    parser.add_argument(
        "--rows",
        type=Path,
        required=True,
        metavar="R",
        help="JSON lines: id, gold, raw (null for no output), finish_reason",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="a new folder"
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help=f"the primary metric: {', '.join(names)} (default: {names[0]})",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def show(
    scored: ScoredAnswers,
    arguments: argparse.Namespace,
    shares: Mapping[str, str],
    more: Mapping[str, Json],
) -> None:
    """Print the figures; `shares` names the count under each share, if it has one."""
    if arguments.json:
        print(json.dumps(_payload(scored, more), indent=2, sort_keys=True))
    else:
        print("\n".join(_lines(scored, arguments.output, shares)))


def _payload(scored: ScoredAnswers, more: Mapping[str, Json]) -> dict[str, Json]:
    return {
        **scored.aggregate,
        **more,
        "aggregate_sha256": scored.aggregate_sha256,
        "declaration_sha256": scored.declaration_sha256,
        "rows_sha256": scored.rows_sha256,
        "sample_scores_sha256": scored.sample_scores_sha256,
        "unidata_version": unicodedata.unidata_version,
    }


def _lines(scored: ScoredAnswers, output: Path, shares: Mapping[str, str]) -> list[str]:
    aggregate = scored.aggregate
    metrics, counts = aggregate["metrics"], aggregate["counts"]
    lines = [f"{metrics['rows']} rows scored into {output}"]
    for name, value in metrics.items():
        if name == "rows" or isinstance(value, dict):
            continue
        mark = "  (primary)" if name == aggregate["primary"]["metric"] else ""
        figure = str(value)
        if name in shares:
            figure = "not measured" if value is None else f"{value:.4f}"
        if shares.get(name) and value is not None:
            figure += f"  {counts[shares[name]]}/{metrics['rows']}"
        lines.append(f"  {name.replace('_', ' '):28} {figure}{mark}")
    lines += [
        f"  {name.replace('_', ' '):28} {count}"
        for name, count in aggregate["companions"].items()
        if count
    ]
    return [*lines, f"aggregate.json sha256 {scored.aggregate_sha256}"]
