"""`fairtrial run CONFIG`: evaluate; resume an unfinished run; replay a finished one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.run.collect import Progress
    from harness.run.teacher_forced.collect import TurnProgress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "config",
        type=Path,
        metavar="CONFIG",
        help="an eval.yaml of kind executable or mlperf-agentic",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with an unfinished run"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="pass every gate and ask no candidate"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Run; 0, or 9 when too many episodes stopped for a score to stand."""
    from harness.config.load import kind_of
    from harness.config.teacher_forced_document import KIND

    if kind_of(arguments.config) == KIND:
        return _run_turns(arguments)
    return _run_tasks(arguments)


def _run_tasks(arguments: argparse.Namespace) -> int:
    """Run a config of kind `executable`."""
    from harness.config import load_config
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
    _say_how(config.paths.output_dir, replayed=finished.replayed)
    if arguments.json:
        print(json.dumps(finished.report, indent=2, sort_keys=True))
    else:
        print(render_run(finished.report, str(config.paths.output_dir)), end="")
    return finished.exit_status


def _run_turns(arguments: argparse.Namespace) -> int:
    """Run a config of kind `mlperf-agentic`."""
    from harness.config.teacher_forced import load_teacher_forced_config
    from harness.report.turns_summary import render_turns
    from harness.run.teacher_forced.evaluate import dry_run, evaluate_turns

    config = load_teacher_forced_config(arguments.config)
    if arguments.dry_run:
        print(json.dumps(dry_run(config), indent=2, sort_keys=True))
        return 0
    finished = evaluate_turns(config, resume=arguments.resume, watch=TurnLine())
    _say_how(config.paths.output_dir, replayed=finished.replayed)
    if arguments.json:
        print(json.dumps(finished.report, indent=2, sort_keys=True))
    else:
        print(render_turns(finished.report, str(config.paths.output_dir)), end="")
    return finished.exit_status


def _say_how(output: Path, *, replayed: bool) -> None:
    from harness.evidence.folder import RunFolder

    if replayed:
        print("the folder is finished: replayed from its evidence", file=sys.stderr)
    for name, size in RunFolder(output).torn_tails().items():
        print(
            f"{name}: {size} bytes that a killed process left unfinished, kept and "
            "not read",
            file=sys.stderr,
        )


class _MovingLine:
    """One line on stderr that moves, or one line a tenth of the way."""

    def __init__(self) -> None:
        self._moving = sys.stderr.isatty()

    def show(self, text: str, done: int, planned: int) -> None:
        """Show a text that belongs to `done` of `planned`."""
        last = done == planned
        if self._moving:
            print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr)
        elif last or done % max(1, planned // 10) == 0:
            print(text, file=sys.stderr)


class ProgressLine(_MovingLine):
    """Shows how far a run over tasks is."""

    def __call__(self, progress: Progress) -> None:
        """Show one finished episode."""
        text = (
            f"{progress.candidate_alias}: {progress.done}/{progress.planned} episodes"
        )
        if progress.stops:
            text += f", {progress.stops} stopped"
        self.show(text, progress.done, progress.planned)


class TurnLine(_MovingLine):
    """Shows how far a run over recorded conversations is."""

    def __call__(self, progress: TurnProgress) -> None:
        """Show one turn more."""
        text = (
            f"{progress.candidate_alias}: {progress.turns}/{progress.planned_turns} "
            f"turns, {progress.conversations}/{progress.planned_conversations} "
            "conversations"
        )
        if progress.failed:
            text += f", {progress.failed} unanswered"
        if progress.score is not None:
            text += f", score so far {progress.score:.4f}"
        self.show(text, progress.turns, progress.planned_turns)
