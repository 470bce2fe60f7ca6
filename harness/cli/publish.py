"""`fairtrial publish PACK --output DIR`: certify a pack and publish its benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.benchmark.publication import PublishedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "pack", metavar="PACK", help="a pack's folder, or the name of a bundled pack"
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="must not exist yet"
    )
    parser.add_argument("--seed", type=int, default=0, help="decides task seeds (0)")
    parser.add_argument("--language", metavar="L", help="the pack's default if absent")
    parser.add_argument(
        "--max-variants",
        type=_count,
        metavar="N",
        help="at most N tasks a template, sampled by the seed; fewer cost less to run",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def _count(text: str) -> int:
    from harness.benchmark.templates import MAX_VARIANTS

    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= MAX_VARIANTS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no whole number from 1 to {MAX_VARIANTS}"
        )
    return number


def run(args: argparse.Namespace) -> int:
    """Publish; 0 for gold, 2 for a finished publication that is not gold."""
    import anyio

    from harness.benchmark.bundled import resolve_pack
    from harness.benchmark.pack import load_pack
    from harness.benchmark.publication import publish, refuse_existing
    from harness.benchmark.templates import MAX_VARIANTS
    from harness.oracle.certifying import CertifyingOracle

    refuse_existing(args.output)
    pack = load_pack(resolve_pack(args.pack))

    async def published() -> PublishedRun:
        return await publish(
            pack,
            args.output,
            seed=args.seed,
            language=args.language,
            max_variants=args.max_variants or MAX_VARIANTS,
            oracle=CertifyingOracle(),
            progress=lambda words: print(words, file=sys.stderr),
        )

    result = anyio.run(published)
    if args.json:
        summary = {
            "output": str(result.output),
            "run_id": result.run_id,
            "tier": result.tier,
            "gold_eligible": result.gold_eligible,
            "rows": result.rows,
            "raw_rows": result.raw_rows,
            "gold_ineligibility_reasons": result.manifest["gold_ineligibility_reasons"],
        }
        print(json.dumps(summary, indent=2, sort_keys=True))
    else:
        print(_text(result))
    return result.exit_status


def _text(result: PublishedRun) -> str:
    from harness.cli.pack import failed_checks

    lines = [
        f"{result.rows} tasks published, tier {result.tier}",
        f"  run     {result.run_id}",
        f"  folder  {result.output}",
    ]
    if result.raw_rows != result.rows:
        lines.append(f"  kept    {result.raw_rows} rows in the raw table")
    return "\n".join([*lines, *failed_checks(result.report)])
