"""`fairtrial drill`: break everything around a run on purpose, and check the blame."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE

if TYPE_CHECKING:
    from harness.drill.drill import DrillResult

EPISODES: Final = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Run the real driver against an endpoint and an oracle that fail on a seeded "
        "schedule, and check that every injected fault lands in its ledger cell. "
        "Sends nothing to anybody else. Exits 0 only if every entry lies on the "
        "diagonal."
    )
    parser.add_argument(
        "--pack",
        default="library",
        metavar="P",
        help="a pack folder or a bundled name (default: library)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="decides the schedule (0)"
    )
    parser.add_argument(
        "--episodes",
        type=_count,
        default=EPISODES,
        metavar="N",
        help="at least so many, in whole runs over the pack's tasks "
        f"({EPISODES}; about 1400 meet 1000 faults)",
    )
    parser.add_argument(
        "--level",
        choices=("process", "confined", "namespaces"),
        default="process",
        help="how far the pack is contained (default: process, where all is possible)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="keep packs, runs and the oracle's records; must not exist yet",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Drill; 0 if every entry lies on the diagonal, else 1."""
    from harness.drill.matrix import drill_report, render_drill

    if arguments.output is None:
        with tempfile.TemporaryDirectory(prefix="fairtrial-drill-") as folder:
            result = _drill(arguments, Path(folder))
    else:
        from harness.benchmark.publication import refuse_existing

        refuse_existing(arguments.output)
        arguments.output.mkdir(parents=True)
        result = _drill(arguments, arguments.output)
    if arguments.json:
        print(json.dumps(drill_report(result), indent=2, sort_keys=True))
    else:
        print(render_drill(result))
    return EXIT_DONE if result.is_clean else EXIT_ANSWER_IS_NO


def _drill(arguments: argparse.Namespace, folder: Path) -> DrillResult:
    import anyio

    from harness.benchmark.bundled import resolve_pack
    from harness.drill.drill import drill

    pack, room = resolve_pack(arguments.pack), folder.resolve()

    async def drilled() -> DrillResult:
        return await drill(
            pack,
            room,
            seed=arguments.seed,
            episodes=arguments.episodes,
            level=arguments.level,
            watch=lambda words: print(words, file=sys.stderr),
        )

    return anyio.run(drilled)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of episodes: 1 or more"
        )
    return int(text)
