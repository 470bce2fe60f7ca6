"""`fairtrial score mlperf-agentic`: a finished MLPerf-agentic run, scored offline."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.causes import EXIT_DONE
from harness.cli.score_figures import Figure, add_file, add_result_arguments, show

if TYPE_CHECKING:
    from harness.canonical import Json
    from harness.predictions.mlperf_agentic import ScoredRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_file(parser, "--dataset", "D", "recorded conversations, JSON lines or Parquet")
    log = "folder with events.jsonl and sample_idx_map.json"
    add_file(parser, "--report-dir", "R", log)
    add_result_arguments(parser, "mlperf-agentic")
    parser.add_argument(
        "--dataset-name",
        default="performance",
        metavar="NAME",
        help="key of the data set in sample_idx_map.json (performance)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Score the run and show the figures."""
    from harness.evaluations.of_files import MlperfRecorder
    from harness.predictions.mlperf_agentic import EVENTS, score_report

    dataset, report = arguments.dataset, arguments.report_dir
    recorder = MlperfRecorder(dataset, report / EVENTS, arguments.metric)
    scored = score_report(
        dataset,
        report,
        arguments.output,
        dataset_name=arguments.dataset_name,
        watch=recorder,
    )
    refused = scored.diagnostics["headline"]["refused"]
    show(
        arguments,
        scored=f"{scored.head['turns']['scored']} turns",
        figures=list(_figures(scored, recorder.metric)),
        notes=[f"  no headline: {reason}" for reason in refused],
        payload=_payload(scored),
    )
    return EXIT_DONE


def _payload(scored: ScoredRun) -> dict[str, Json]:
    return {
        **scored.head,
        "n_repeats": scored.n_repeats,
        "headline": scored.diagnostics["headline"],
        "answered_only": scored.diagnostics["answered_only"],
        "inputs": scored.diagnostics["inputs"],
    }


def _figures(scored: ScoredRun, primary: str) -> Iterator[Figure]:
    turns, found = scored.head["turns"], scored.diagnostics
    answered = found["answered_only"]
    yield Figure("score", scored.score, primary=primary == "score")
    yield Figure(
        "answered only",
        answered["score"],
        note=_over(answered),
        primary=primary == "answered_only_score",
    )
    for domain, part in scored.head["domains"].items():
        yield Figure(domain, part["score"], note=_over(part))
    baseline = found["baselines"]["repeat_previous"]
    yield Figure("repeat previous", baseline, note="(baseline)")
    if turns["missing"]:
        listed = _listed(found["unanswered"]["causes"])
        yield Figure("unanswered", f"{turns['missing']}: {listed}")
    for title, counts in (
        ("lines skipped", found["lines"]["skipped"]),
        ("calls skipped", found["calls_skipped"]),
    ):
        if counts:
            yield Figure(title, _listed(counts))


def _over(part: Mapping[str, Json]) -> str:
    return f"over {part['scored']} turns"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
