"""CPU, memory and wall time of a command with its whole process tree.

A lean keeper process runs the command and adopts whatever the command leaves behind,
so that daemons and orphans are counted too; its own cost is not. Peaks of memory come
in two kinds: the largest single process, exact, and the sum over the tree, sampled.
Compare figures as ratios of one sitting only: a shared machine changes its speed.

    python perf/measure.py -n 5 -- fairtrial --help
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run of a command cost."""

    exit_status: int
    """Of the command itself; negative for a signal."""
    cpu_s: float
    """User and system, all processes of the tree."""
    wall_s: float
    """Until the last process of the tree is gone."""
    peak_process_bytes: int
    """Largest resident size of any single process; a keeper's few MB at least."""
    peak_tree_bytes: int
    """Largest sampled sum of resident sizes."""


class MeasurementError(RuntimeError):
    """The command could not be run or did not end in time."""


def measure(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    timeout_s: float = 600.0,
) -> Usage:
    """Run a command once; what it prints is appended to `log`, or dropped.

    Raises MeasurementError when it cannot be started or outlives `timeout_s`.
    """
    with (
        tempfile.TemporaryFile() as report,
        Path(log or os.devnull).open("ab") as output,
    ):
        keeper = subprocess.run(
            [
                *(sys.executable, "-I", "-S", str(KEEPER)),
                *(str(report.fileno()), str(timeout_s)),
                *command,
            ],
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[report.fileno()],
            check=False,
        )
        report.seek(0)
        text = report.read()
    if keeper.returncode or not text:
        raise MeasurementError(
            f"no measurement of {command[0]!r}: it cannot be started, or it took "
            f"more than {timeout_s:g} s (keeper status {keeper.returncode})"
        )
    return Usage(**json.loads(text))


def interleaved(
    commands: Mapping[str, Sequence[str]], rounds: int, **options: object
) -> dict[str, list[Usage]]:
    """Run every command once a round, so that a slow moment hits all alike."""
    found: dict[str, list[Usage]] = {label: [] for label in commands}
    for _ in range(rounds):
        for label, command in commands.items():
            found[label].append(measure(command, **options))
    return found


def median(runs: Sequence[Usage]) -> Usage:
    """Return the median of each figure; the worst exit status."""
    middle = {
        field.name: statistics.median(getattr(run, field.name) for run in runs)
        for field in fields(Usage)
    }
    middle |= {name: round(middle[name]) for name in middle if name.endswith("bytes")}
    middle["exit_status"] = max((run.exit_status for run in runs), key=abs)
    return Usage(**middle)


def main() -> int:
    """Measure the command given on the command line; print one JSON line."""
    parser = argparse.ArgumentParser(description="cost of a command's process tree")
    parser.add_argument("-n", type=int, default=3, help="runs (default: 3)")
    parser.add_argument("--log", type=Path, help="keep what the command prints")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[arguments.command[:1] == ["--"] :]
    if not command:
        parser.error("expected a command after --")
    runs = [measure(command, log=arguments.log) for _ in range(arguments.n)]
    spread = [min(run.cpu_s for run in runs), max(run.cpu_s for run in runs)]
    print(json.dumps({**asdict(median(runs)), "cpu_s_range": spread}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
