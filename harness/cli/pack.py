"""`fairtrial pack init DIR` and `fairtrial pack check PACK`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from harness.visible_text import visible

_STARTER: Final = "library"
_SHOWN: Final = 5
"""Failures that the terminal shows for one check."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the two subcommands."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = commands.add_parser("init", help="write a small pack to start from")
    init.add_argument("folder", type=Path, metavar="DIR", help="must not exist yet")
    check = commands.add_parser("check", help="run every check of a pack")
    check.add_argument(
        "pack", metavar="PACK", help="a pack's folder, or the name of a bundled pack"
    )
    check.add_argument("--seed", type=int, default=0, help="decides task seeds (0)")
    check.add_argument("--language", metavar="L", help="the pack's default if absent")
    for command in (init, check):
        command.add_argument("--json", action="store_true", help="JSON on stdout")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    return _init(args) if args.action == "init" else _check(args)


def _init(args: argparse.Namespace) -> int:
    import shutil

    from harness.benchmark.bundled import bundled_pack
    from harness.benchmark.pack import MANIFEST_NAME
    from harness.benchmark.publication import refuse_existing

    folder: Path = args.folder
    refuse_existing(folder)
    shutil.copytree(
        bundled_pack(_STARTER), folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    manifest = folder / MANIFEST_NAME
    pack_id = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(
        text.replace(f"pack_id: {_STARTER}", f'pack_id: "{pack_id or "my-pack"}"', 1),
        encoding="utf-8",
    )
    if args.json:
        print(json.dumps({"folder": str(folder), "pack_id": pack_id or "my-pack"}))
    else:
        print(f"{folder} is a working pack; read {folder / 'docs' / 'README.md'},")
        print(f"change it, and run: fairtrial pack check {folder}")
    return 0


def _check(args: argparse.Namespace) -> int:
    import anyio

    from harness.benchmark.bundled import resolve_pack
    from harness.benchmark.certification import Certification
    from harness.benchmark.certify import certify
    from harness.benchmark.pack import load_pack
    from harness.benchmark.publication import (
        NOT_GOLD,
        publishable_rows,
        refuse_contradictions,
    )
    from harness.benchmark.templates import expand
    from harness.causes import EXIT_DONE, exit_status
    from harness.errors import PackError
    from harness.oracle.certifying import CertifyingOracle

    pack = load_pack(resolve_pack(args.pack))
    tasks = expand(pack, seed=args.seed, language=args.language)

    async def certified() -> Certification:
        return await certify(
            pack,
            tasks,
            CertifyingOracle(),
            progress=lambda words: print(words, file=sys.stderr),
        )

    certification = anyio.run(certified)
    report = certification.report(pack)
    refusal: PackError | None = None
    try:
        _, published = publishable_rows(pack, tasks, certification)
        refuse_contradictions(published)
    except PackError as error:
        refusal = error
    gold = certification.gold_eligible and refusal is None
    if args.json:
        report["publishing_refused"] = refusal.as_report() if refusal else None
        print(json.dumps(report, indent=2, sort_keys=True))
    else:
        print(_text(report) + (f"\n{refusal}" if refusal else ""))
    return EXIT_DONE if gold else exit_status(NOT_GOLD)


def _text(report: dict[str, Any]) -> str:
    stats = report["stats"]
    lines = [
        f"{report['pack_id']} {report['pack_version']}: {report['tier']}",
        f"  fingerprint  {report['pack_fingerprint']}",
        f"  {stats['templates']} templates, {stats['tasks']} tasks, "
        f"{stats['gold_calls']} gold calls, isolation {report['isolation_level']}",
    ]
    lines += [f"  {check['status']:8} {check['check']}" for check in report["checks"]]
    return "\n".join([*lines, *failed_checks(report)])


def failed_checks(report: dict[str, Any]) -> list[str]:
    """Return the lines that say what keeps a pack from gold."""
    lines: list[str] = []
    for check in report["checks"]:
        if check["status"] == "passed":
            continue
        lines.append(f"{check['check']} {check['status']}: wanted: {check['meaning']}")
        failures = check["failures"]
        lines += [
            "  "
            + visible("; ".join(f"{name}: {value}" for name, value in failure.items()))
            for failure in failures[:_SHOWN]
        ]
        if len(failures) > _SHOWN:
            lines.append(f"  and {len(failures) - _SHOWN} more")
    return lines
