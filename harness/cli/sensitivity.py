"""`fairtrial sensitivity RUN`: one recorded run under many scoring rules at once."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a finished run folder")
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Score under every declared policy and show the table."""
    from harness.causes import EXIT_DONE
    from harness.predict.folder import refuse_predict_run
    from harness.report.sensitivity import render_sensitivity
    from harness.run.seclusion import secluded
    from harness.run.sensitivity import sensitivity_of

    refuse_predict_run(arguments.run, "fairtrial sensitivity")
    with secluded():
        payload = sensitivity_of(arguments.run)
    if arguments.json:
        print(json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        print(render_sensitivity(payload), end="")
    return EXIT_DONE
