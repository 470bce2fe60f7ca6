"""`fairtrial seal RUN --output FILE`: one portable file of a run that verifies."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.verification.seal import Sealed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a finished run folder")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="must not exist yet"
    )
    parser.add_argument(
        "--redact",
        action="extend",
        nargs="+",
        default=[],
        metavar="WHAT",
        help="keep rows as digests: prompts, responses, results, bodies or task:ID",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Verify and seal; 0, or the status of the refusal."""
    from harness.predict.folder import refuse_predict_run
    from harness.run.seclusion import secluded
    from harness.run.teacher_forced.frozen import refuse_turns_run
    from harness.verification.extras import all_extras
    from harness.verification.redaction import Redaction
    from harness.verification.seal import seal_run

    refuse_predict_run(arguments.run, "fairtrial seal")
    refuse_turns_run(arguments.run)
    redaction = Redaction.of(arguments.redact)
    extras = all_extras()
    with secluded():
        sealed = seal_run(arguments.run, arguments.output, redaction, extras)
    if arguments.json:
        print(json.dumps(_payload(sealed), indent=2, sort_keys=True))
    else:
        print(_text(sealed, arguments.output))
    return 0


def _payload(sealed: Sealed) -> dict[str, object]:
    return {
        "bundle_hash": sealed.bundle_hash,
        "size_bytes": sealed.size_bytes,
        "aggregate_hashes": sealed.aggregate_hashes,
        **{
            name: value
            for name, value in sealed.header.payload().items()
            if name in ("merkle_root", "manifest_hash", "redaction", "withheld_rows")
        },
    }


def _text(sealed: Sealed, output: Path) -> str:
    header = sealed.header
    rows = [
        f"  {number} rows of {file} are digests"
        for file, number in header.withheld_rows.items()
    ]
    return "\n".join(
        [
            f"sealed {len(header.members)} files in {output}, "
            f"{sealed.size_bytes} bytes",
            *rows,
            f"merkle root  {header.merkle_root}",
            f"bundle hash  {sealed.bundle_hash}",
            f"verify it anywhere: python -m harness.verify_bundle {output}",
        ]
    )
