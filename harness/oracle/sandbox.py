"""Which containment levels this machine offers, for `fairtrial doctor --sandbox`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import oracle_workers
from harness.canonical import Json
from harness.errors import OracleError
from harness.strict_json import StrictJsonError, decode_document

_PATIENCE_S = 30.0
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from oracle_workers.detect import main; main()"
)


def detect_sandbox() -> dict[str, Json]:
    """Try every level in a throwaway process and return what was found.

    `levels` maps each level to `available` and either `applied` or `missing` and
    `detail`. Blocks for about 0.1 seconds; raises OracleError when it cannot be tried.
    """
    room = Path(oracle_workers.__file__).parent.parent
    command = [sys.executable, "-s", "-S", "-P", "-B", "-c", _BOOT, str(room)]
    try:
        finished = subprocess.run(  # noqa: S603 - our own interpreter and text
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=True,
            env={},
        )
        findings = decode_document(finished.stdout)
    except (OSError, subprocess.SubprocessError, StrictJsonError) as error:
        raise OracleError(
            "eval_isolation_unavailable",
            f"containment cannot be tried here: {error}",
            expected="a Linux machine on which this interpreter can start itself",
        ) from None
    if not isinstance(findings, dict):
        raise OracleError("eval_isolation_unavailable", "the trial gave no findings")
    return findings
