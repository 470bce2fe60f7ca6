"""`fairtrial verify RUN|FILE`: every hash and every score again, and what is wrong."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN|FILE",
        help="a finished run folder, a rescoring or a bundle",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Verify; 0 if nothing is wrong, 1 if something is."""
    from harness.cli.predict_again import predict_again
    from harness.cli.turns_again import again
    from harness.predict.folder import is_predict_run
    from harness.run.rescored_folder import is_rescored
    from harness.run.seclusion import secluded
    from harness.run.teacher_forced.frozen import is_turns_run
    from harness.verification.answer import (
        as_json,
        as_text,
        exit_status,
        violations_text,
    )
    from harness.verification.extras import all_extras
    from harness.verification.rescored import verify_rescored
    from harness.verification.verify import verify

    if is_predict_run(arguments.run):
        return predict_again("verified", arguments.run, as_json=arguments.json)
    if is_turns_run(arguments.run):
        return again("verified", arguments.run, as_json=arguments.json)
    extras = all_extras()
    with secluded():
        rescored = is_rescored(arguments.run)
        verification = (verify_rescored if rescored else verify)(arguments.run, extras)
    print(as_json(verification) if arguments.json else as_text(verification))
    found = violations_text(verification)
    if found:
        print(found, file=sys.stderr)
    return exit_status(verification)
