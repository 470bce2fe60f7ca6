"""`fairtrial run CONFIG`: evaluate; resume an unfinished run; replay a finished one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.run.collect import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="an eval.yaml")
    parser.add_argument(
        "--resume", action="store_true", help="go on with an unfinished run"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="pass every gate and ask no candidate"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Run; 0, or 9 when too many episodes stopped for a score to stand."""
    from harness.config import load_config
    from harness.evidence.folder import RunFolder
    from harness.report.html import render_html
    from harness.report.run_summary import render_run
    from harness.run.evaluate import dry_run, evaluate

    config = load_config(arguments.config)
    if arguments.dry_run:
        print(json.dumps(dry_run(config), indent=2, sort_keys=True))
        return 0
    label = config.paths.output_dir.name
    finished = evaluate(
        config,
        resume=arguments.resume,
        watch=ProgressLine(),
        render_page=lambda report: render_html(report, label),
    )
    if finished.replayed:
        print("the folder is finished: replayed from its evidence", file=sys.stderr)
    for name, size in RunFolder(config.paths.output_dir).torn_tails().items():
        print(
            f"{name}: {size} bytes that a killed process left unfinished, kept and "
            "not read",
            file=sys.stderr,
        )
    if arguments.json:
        print(json.dumps(finished.report, indent=2, sort_keys=True))
    else:
        print(render_run(finished.report, str(config.paths.output_dir)), end="")
    return finished.exit_status


class ProgressLine:
    """Shows how far a run is, on stderr: one moving line, or one line a tenth."""

    def __init__(self) -> None:
        self._moving = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        """Show one finished episode."""
        last = progress.done == progress.planned
        text = (
            f"{progress.candidate_alias}: {progress.done}/{progress.planned} episodes"
        )
        if progress.stops:
            text += f", {progress.stops} stopped"
        if self._moving:
            print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr)
        elif last or progress.done % max(1, progress.planned // 10) == 0:
            print(text, file=sys.stderr)
