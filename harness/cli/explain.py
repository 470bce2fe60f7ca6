"""`fairtrial explain RUN TASK`: one episode as a person reads it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("task", metavar="TASK", help="a task id, or how it begins")
    parser.add_argument(
        "--candidate", metavar="A", help="an alias (default: the first of the plan)"
    )
    parser.add_argument(
        "--trial", type=int, default=0, metavar="N", help="which trial, from 0"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Show one episode."""
    from harness.causes import EXIT_DONE
    from harness.predict.folder import refuse_predict_run
    from harness.report.episode import render_episode
    from harness.run.explain import explain_episode
    from harness.run.seclusion import secluded

    refuse_predict_run(arguments.run, "fairtrial explain")
    with secluded():
        payload = explain_episode(
            arguments.run,
            arguments.task,
            candidate=arguments.candidate,
            trial=arguments.trial,
        )
    if arguments.json:
        print(json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        print(render_episode(payload), end="")
    return EXIT_DONE
