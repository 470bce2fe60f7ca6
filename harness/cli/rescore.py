"""`fairtrial rescore RUN --output NEW`: score a recorded run again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    from harness.run.policies import CHANGES

    parser.add_argument("run", type=Path, metavar="RUN", help="a finished run folder")
    parser.add_argument(
        "--policy",
        metavar="P",
        help=f"{', '.join(CHANGES)}; or a YAML file with a `scoring` section "
        "(default: declared, the run's own)",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="NEW", help="a new folder"
    )
    parser.add_argument("--json", action="store_true", help="the record on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Rescore; 0, or 3 where the evidence does not support the policy."""
    from harness.causes import EXIT_DONE
    from harness.predict.folder import refuse_predict_run
    from harness.report.html import render_html
    from harness.report.rescore import render_rescore
    from harness.run.rescore import rescore_run
    from harness.run.score import readable
    from harness.run.seclusion import secluded

    refuse_predict_run(arguments.run, "fairtrial rescore")
    with secluded():
        rescored = rescore_run(
            arguments.run,
            arguments.policy,
            arguments.output,
            render_page=render_html,
        )
    if arguments.json:
        print(json.dumps(rescored.record, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        before = rescored.parent_report
        with readable("eval_report.json of the run"):
            print(render_rescore(rescored.record, rescored.report, before), end="")
    return EXIT_DONE
