"""`fairtrial compare RUN RUN...`: whether scores may be held against each other."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE, EXIT_INCOMPATIBLE

_LABELS = ("comparable", "cross-runtime")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="folders with an eval_record.json, two at least",
    )
    parser.add_argument(
        "--use",
        action="append",
        default=[],
        metavar="RUN=RECORD",
        help="use this record of a run (default: the one in its folder); repeatable",
    )
    parser.add_argument(
        "--require",
        choices=_LABELS,
        metavar="LABEL",
        help=f"exit 1 below this label: {' or '.join(_LABELS)}",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Compare; 8 where something is incompatible, 1 below the required label."""
    from harness.evaluations.comparison import compare
    from harness.evaluations.entry import candidates_of
    from harness.evaluations.pairs import STRENGTH, Label
    from harness.evaluations.selection import select_records
    from harness.report.compare import (
        comparison_payload,
        pair_rows,
        render_comparison,
    )

    _require_two(arguments.runs)
    selected = select_records(arguments.runs, arguments.use)
    entries = [e for each in selected for e in candidates_of(each.run, each.record)]
    comparison = compare(entries)
    paired = pair_rows(comparison)
    if arguments.json:
        payload = comparison_payload(selected, comparison, paired)
        print(json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        print(render_comparison(selected, comparison, paired), end="")
    if comparison.label is Label.INCOMPATIBLE:
        return EXIT_INCOMPATIBLE
    required = arguments.require
    if required and STRENGTH[comparison.label] < STRENGTH[Label(required)]:
        return EXIT_ANSWER_IS_NO
    return EXIT_DONE


def _require_two(runs: list[Path]) -> None:
    from harness.errors import UsageError

    if len(runs) < 2:
        raise UsageError(
            "eval_cli_invalid",
            "a comparison needs two runs",
            where="RUN",
            expected="two folders or more",
            actual=str(len(runs)),
            recovery="name another run; a run's candidates stand in its report",
        )
