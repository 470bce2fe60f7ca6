"""`fairtrial predict CONFIG`: single-turn predictions, or a later evaluation."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.causes import EXIT_DONE
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.predict.collect import Progress
    from harness.predict.plan import PredictPlan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG", help="a config of kind predict"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder of the run"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with an unfinished or failed run"
    )
    parser.add_argument(
        "--engine", metavar="NAME", help="the engine that answers, by its name"
    )
    parser.add_argument(
        "--evaluate",
        type=Path,
        metavar="RUN",
        help="ask the rows of this finished run again, of --engine",
    )
    parser.add_argument("--json", action="store_true", help="the record on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Predict and score, and show the record."""
    from harness.predict.folder import PredictFolder
    from harness.predict.run import predict

    plan = _plan(arguments)
    folder = PredictFolder(arguments.output)
    finished = predict(plan, folder, resume=arguments.resume, watch=ProgressLine())
    if finished.replayed:
        print("the folder is finished: worked out from its evidence", file=sys.stderr)
    for name, size in folder.torn_tails().items():
        print(
            f"{name}: {size} bytes that a killed process left unfinished, kept and "
            "not read",
            file=sys.stderr,
        )
    _tell_place(arguments)
    if arguments.json:
        print(json.dumps(finished.record, indent=2, sort_keys=True))
    else:
        from harness.report.prediction_summary import render_predictions

        print(render_predictions(finished.record, str(arguments.output)), end="")
    return EXIT_DONE


def _plan(arguments: argparse.Namespace) -> PredictPlan:
    from harness.predict.evaluation import plan_of_evaluation
    from harness.predict.plan import plan_of_file

    if arguments.evaluate is None:
        return plan_of_file(arguments.config, engine=arguments.engine)
    if arguments.engine is None:
        raise UsageError(
            "eval_cli_invalid",
            "--evaluate needs --engine",
            expected="the name of one of the config's engines",
            recovery="say which engine answers the rows again",
        )
    return plan_of_evaluation(
        arguments.config,
        arguments.evaluate,
        engine=arguments.engine,
        output=arguments.output,
    )


def _tell_place(arguments: argparse.Namespace) -> None:
    """Say that an evaluation elsewhere is not found from its run."""
    if arguments.evaluate is None:
        return
    run, output = arguments.evaluate.resolve(), arguments.output.resolve()
    if output.parent != run.parent:
        print(
            f"{output.name} does not lie beside {run.name}, so `fairtrial compare` "
            "does not find it from there",
            file=sys.stderr,
        )


class ProgressLine:
    """Shows how far a run is, on stderr: one moving line, or one line a tenth."""

    def __init__(self) -> None:
        self._moving = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        """Show one row more."""
        last = progress.done == progress.planned
        text = f"{progress.subject}: {progress.done}/{progress.planned} rows"
        if progress.stops:
            text += f", {progress.stops} stopped"
        if self._moving:
            print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr)
        elif last or progress.done % max(1, progress.planned // 10) == 0:
            print(text, file=sys.stderr)
