"""`fairtrial demo`: the whole way once, offline, in under a minute.

It publishes a bundled pack, serves five control candidates by a process of their
own, evaluates them over real sockets and real workers, and replays the result. Four
of the controls make one declared mistake each; the table shows that they are caught.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.run.evaluate import FinishedRun
    from harness.run.replay import Replayed

TASKS_A_TEMPLATE: Final = 2
"""Keeps the demo well under a minute; `fairtrial publish` takes every variant."""
PACK: Final = "bank"
CONTROLS: Final = ("gold", "words", "eager", "wrong-argument", "early-confirm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="must not exist yet (fairtrial-demo, or the next free number)",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Publish, evaluate, replay and show."""
    import anyio

    from harness.benchmark.publication import refuse_existing
    from harness.report.overview import render_overview
    from harness.run.replay import replay_run

    folder = arguments.output or next(_free_names())
    refuse_existing(folder)
    folder.mkdir(parents=True)
    _say(f"1/4 certify and publish the pack `{PACK}`")
    anyio.run(_publish, folder)
    _say("2/4 serve control candidates over loopback")
    finished = anyio.run(_evaluate_controls, folder)
    _say("4/4 replay the run from its evidence alone")
    replayed = replay_run(folder / "run")
    if arguments.json:
        print(json.dumps(finished.report, indent=2, sort_keys=True))
    else:
        print(render_overview(finished.report))
        print(_next_steps(folder, replayed))
    return finished.exit_status if replayed.is_equal else 1


def _free_names() -> Iterator[Path]:
    number = 1
    while True:
        path = Path("fairtrial-demo" if number == 1 else f"fairtrial-demo-{number}")
        if not path.exists():
            yield path
        number += 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)


async def _publish(folder: Path) -> None:
    from harness.benchmark.bundled import resolve_pack
    from harness.benchmark.pack import load_pack
    from harness.benchmark.publication import publish
    from harness.oracle.certifying import CertifyingOracle

    pack = load_pack(resolve_pack(PACK))
    await publish(
        pack,
        folder / "benchmark",
        max_variants=TASKS_A_TEMPLATE,
        oracle=CertifyingOracle(),
    )


async def _evaluate_controls(folder: Path) -> FinishedRun:
    from harness.candidates.control_process import control_server

    async with control_server(
        folder / "benchmark", log=folder / "candidates.log"
    ) as server:
        _say(f"3/4 evaluate {len(CONTROLS)} candidates at {server.base_url}")
        return await _evaluate(folder, server.base_url)


async def _evaluate(folder: Path, base_url: str) -> FinishedRun:
    from harness.benchmark.bundled import resolve_pack
    from harness.config.starter import (
        OracleFiles,
        starter_candidate,
        write_starter_config,
    )
    from harness.report.html import render_html
    from harness.run.evaluate import evaluate_here

    pack = resolve_pack(PACK)
    config = write_starter_config(
        folder / "eval.yaml",
        run_manifest=folder / "benchmark" / "run_manifest.json",
        candidates=[starter_candidate(base_url, name) for name in CONTROLS],
        oracle=OracleFiles("python", pack / "manifest.yaml", pack / "backend.py"),
        output_dir="run",
    )
    return await evaluate_here(
        config,
        resume=False,
        watch=lambda _: None,
        render_page=lambda report: render_html(report, "run"),
    )


def _next_steps(folder: Path, replayed: Replayed) -> str:
    verdict = "equal hashes" if replayed.is_equal else "DIFFERENT HASHES"
    return "\n".join(
        [
            "",
            "gold answers as published; each other control makes one declared mistake.",
            f"Replayed {replayed.episodes} episodes without network, key, pack or "
            f"worker: {verdict}.",
            "",
            "Where things lie",
            f"  {folder}/benchmark/         the published tasks",
            f"  {folder}/eval.yaml          the evaluation config, every key stated",
            f"  {folder}/run/report.html    the report as a page",
            f"  {folder}/run/               evidence, task table, manifest",
            "",
            "What to try next",
            f"  fairtrial replay {folder}/run",
            "  fairtrial config init --benchmark "
            f"{folder}/benchmark --base-url URL --model M --pack {PACK} "
            "--output my-eval.yaml",
            "  fairtrial run my-eval.yaml",
        ]
    )
