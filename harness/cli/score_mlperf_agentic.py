"""`fairtrial score mlperf-agentic`: a finished MLPerf-agentic run, scored offline."""

from __future__ import annotations

import argparse
import json
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from harness.causes import EXIT_DONE

if TYPE_CHECKING:
    from harness.canonical import Json
    from harness.predictions.mlperf_agentic import ScoredRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "--dataset",
        type=Path,
        required=True,
        metavar="D",
        help="recorded conversations, JSON lines or Parquet",
    )
    parser.add_argument(
        "--report-dir",
        type=Path,
        required=True,
        metavar="R",
        help="folder with events.jsonl and sample_idx_map.json",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="a new folder"
    )
    parser.add_argument(
        "--dataset-name",
        default="performance",
        metavar="NAME",
        help="key of the data set in sample_idx_map.json (performance)",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Score the run and show the figures."""
    from harness.predictions.mlperf_agentic import score_report

    scored = score_report(
        arguments.dataset,
        arguments.report_dir,
        arguments.output,
        dataset_name=arguments.dataset_name,
    )
    if arguments.json:
        print(json.dumps(_payload(scored), indent=2, sort_keys=True))
    else:
        print(_text(scored, arguments.output))
    return EXIT_DONE


def _payload(scored: ScoredRun) -> dict[str, Json]:
    return {
        **scored.head,
        "n_repeats": scored.n_repeats,
        "headline": scored.diagnostics["headline"],
        "answered_only": scored.diagnostics["answered_only"],
        "inputs": scored.diagnostics["inputs"],
        "unidata_version": unicodedata.unidata_version,
    }


def _text(scored: ScoredRun, output: Path) -> str:
    turns, found = scored.head["turns"], scored.diagnostics
    answered = found["answered_only"]
    lines = [
        f"{turns['scored']} turns scored into {output}",
        f"  score            {_figure(scored.score)}",
        f"  answered only    {_figure(answered['score'])}"
        f"  over {answered['scored']} turns",
    ]
    lines += [
        f"  {domain:16} {_figure(part['score'])}  over {part['scored']} turns"
        for domain, part in scored.head["domains"].items()
    ]
    baseline = found["baselines"]["repeat_previous"]
    lines.append(f"  repeat previous  {_figure(baseline)}  (baseline)")
    if turns["missing"]:
        causes = found["unanswered"]["causes"]
        listed = ", ".join(f"{count} {cause}" for cause, count in causes.items())
        lines.append(f"  unanswered       {turns['missing']}: {listed}")
    for title, counts in (
        ("lines skipped", found["lines"]["skipped"]),
        ("calls skipped", found["calls_skipped"]),
    ):
        if counts:
            listed = ", ".join(f"{count} {name}" for name, count in counts.items())
            lines.append(f"  {title:16} {listed}")
    for reason in found["headline"]["refused"]:
        lines.append(f"  no headline: {reason}")
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f}"
