"""`fairtrial accounting FILE`: what became of published numbers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from harness.causes import EXIT_DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a list of published numbers"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Account for the numbers; nothing is written and nobody is asked."""
    from harness.accounting.account import account
    from harness.accounting.document import read_published
    from harness.report.accounting import accounting_payload, render_accounting
    from harness.run.seclusion import secluded

    numbers = read_published(arguments.file)
    with secluded():
        accounts = account(numbers)
    if arguments.json:
        payload = accounting_payload(accounts)
        print(json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        print(render_accounting(accounts), end="")
    return EXIT_DONE
