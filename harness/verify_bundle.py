"""`python -m harness.verify_bundle FILE`: verify with the standard library alone.

FILE is what `fairtrial seal` wrote, or a run folder. Every hash, every score and
every aggregate is worked out again. Only where a tool's schema has a `pattern` is
anything else imported: google-re2, which runs it in linear time.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from harness.causes import exit_status as status_of
from harness.errors import ArtifactError, FairtrialError
from harness.evidence.artifacts import read_json_artifact
from harness.predict.folder import refuse_predict_run
from harness.run.seclusion import secluded
from harness.run.settings import RESOLVED_FILE, require_executable
from harness.verification.answer import as_json, as_text, exit_status, violations_text
from harness.verification.verify import verify


def main(argv: list[str] | None = None) -> int:
    """Verify and print; return 0, 1 for a violation, 3 where it could not be done."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.verify_bundle",
        description="verify a sealed run with the standard library alone",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a bundle, or a folder")
    parser.add_argument("--json", action="store_true", help="JSON on stdout")
    arguments = parser.parse_args(argv)
    try:
        _refuse_other_kinds(arguments.file)
        with secluded():
            verification = verify(arguments.file)
    except FairtrialError as error:
        sys.stderr.write(f"{error}\n")
        return status_of(error.code)
    answer = as_json if arguments.json else as_text
    sys.stdout.write(answer(verification) + "\n")
    found = violations_text(verification)
    if found:
        sys.stderr.write(found + "\n")
    return exit_status(verification)


def _refuse_other_kinds(path: Path) -> None:
    """Raise FairtrialError for a folder of another kind, which `fairtrial` verifies."""
    refuse_predict_run(path, "python -m harness.verify_bundle")
    resolved = path / RESOLVED_FILE
    if resolved.is_file():
        with suppress(ArtifactError):  # What cannot be read is a finding.
            document = read_json_artifact(resolved)
            require_executable(document)


if __name__ == "__main__":
    raise SystemExit(main())
