"""What `fairtrial --help` costs to start, beside bare Python and an import of pydantic.

The three are run in turn in one sitting; the ratios are the result, the seconds are
not, for they change with the machine's mood. `--max-ratio` makes it a gate.

    python perf/startup.py -n 9 --max-ratio 12
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from measure import Usage, interleaved, median

ROOT = Path(__file__).parent.parent
HELP = "from harness.cli.main import console; console()"
COMMANDS = {
    "fairtrial --help": [sys.executable, "-c", HELP, "--help"],
    "import pydantic": [sys.executable, "-c", "import pydantic"],
    "bare python": [sys.executable, "-c", "pass"],
}
HEAVY = ("pyarrow", "duckdb", "httpx", "pydantic", "anyio", "torch", "yaml", "re2")
LIST_MODULES = (
    "import sys; from harness.cli.main import main\n"
    "try: main(['--help'])\n"
    "except SystemExit: pass\n"
    "print(*sorted(m for m in sys.modules if m in sys.argv[1:]), file=sys.stderr)"
)


def heavy_modules() -> list[str]:
    """Return the heavy packages that `--help` imports; none is right."""
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *HEAVY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.split()


def as_text(figures: dict[str, Usage], heavy: list[str]) -> str:
    """Return the figures as the lines that a terminal shows."""
    bare = figures["bare python"].cpu_s
    lines = [f"{'command':18} {'CPU s':>7} {'x bare':>7} {'peak MiB':>9}"]
    lines += [
        f"{label:18} {usage.cpu_s:7.3f} {usage.cpu_s / bare:7.1f} "
        f"{usage.peak_process_bytes / 2**20:9.1f}"
        for label, usage in figures.items()
    ]
    ratio = figures["fairtrial --help"].cpu_s / figures["import pydantic"].cpu_s
    lines.append(f"fairtrial --help / import pydantic: {ratio:.2f}")
    lines.append(f"heavy packages imported by --help: {', '.join(heavy) or 'none'}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 when a limit is given and passed."""
    parser = argparse.ArgumentParser(description="start-up cost of the command line")
    parser.add_argument("-n", type=int, default=9, help="rounds (default: 9)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--max-ratio", type=float, help="exit 1 above this multiple of bare python"
    )
    arguments = parser.parse_args()
    runs = interleaved(COMMANDS, arguments.n, cwd=ROOT)
    figures = {label: median(usages) for label, usages in runs.items()}
    failed = [label for label, usage in figures.items() if usage.exit_status]
    if failed:
        print(f"does not run: {', '.join(failed)}", file=sys.stderr)
        return 1
    heavy = heavy_modules()
    ratio = figures["fairtrial --help"].cpu_s / figures["bare python"].cpu_s
    if arguments.json:
        payload = {
            label: {
                "cpu_s": usage.cpu_s,
                "peak_process_bytes": usage.peak_process_bytes,
            }
            for label, usage in figures.items()
        }
        print(json.dumps({"figures": payload, "ratio": ratio, "heavy": heavy}))
    else:
        print(as_text(figures, heavy))
    limit = arguments.max_ratio
    return int(bool(heavy) or (limit is not None and ratio > limit))


if __name__ == "__main__":
    raise SystemExit(main())
