"""How long after its deadline a call that never returns is over, and all of it gone.

Plays the hostile packs that end at a deadline, in real workers: from the deadline
until the fault is in the caller's hands, which is after every process of the session
was killed and reaped and its folder removed. Informational: a busy machine is late.
`--max-ms` makes the 95th percentile a gate; the aim is 250 ms.

    python perf/deadlines.py -n 20 --parallel 4
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import anyio

from harness.oracle.contracts import (
    OracleFault,
    SessionContext,
    WorkerDeadlines,
)
from harness.oracle.host import OracleHost
from harness.oracle.sandbox import detect_sandbox
from tests.hostile.pack_folders import write_hostile_pack
from tests.hostile.tricks import LEVELS, Trick, read_tricks

AIM_MS = 250.0
CALL_S = 0.3
EPISODE_S = 60.0
CLOCK = "2026-01-01T09:00:00+00:00"
ENDS = "episode.oracle_timeout"


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late one pack ended at one level, in milliseconds after the deadline."""

    level: str
    pack: str
    calls: int
    median_ms: float
    p95_ms: float
    max_ms: float
    within_aim: float
    """Share of the calls that were over within the aim."""


def hanging_tricks(names: Sequence[str]) -> list[Trick]:
    """Return the packs whose call ends at its deadline; some, or all, by name."""
    found = [
        trick
        for trick in read_tricks()
        if trick.ends == ENDS and trick.place == "look" and not trick.has_own_host
    ]
    unknown = set(names) - {trick.name for trick in found}
    if unknown:
        raise SystemExit(f"no such pack: {', '.join(sorted(unknown))}")
    return [trick for trick in found if not names or trick.name in names]


async def late_ms(host: OracleHost, trick: Trick) -> float:
    """Play one call and return how late it was over, in milliseconds."""
    context = SessionContext(trick.name, 0, CLOCK)
    session = await host.open_session(
        context, deadline=anyio.current_time() + EPISODE_S
    )
    await session.reset()
    deadline = anyio.current_time() + CALL_S
    try:
        await session.call_tool("get_item", {"item_id": "I-1"}, turn_index=0)
    except OracleFault as fault:
        if fault.kind == "timeout":
            return (anyio.current_time() - deadline) * 1000
    raise SystemExit(f"{trick.name} did not end at its deadline")


async def play(
    folder: Path, level: str, tricks: Sequence[Trick], rounds: int, parallel: int
) -> list[Lateness]:
    """Play every pack `rounds` times, `parallel` sessions at a time, in one host."""
    facts = {"OUTSIDE": str(folder), "EVALUATOR": os.getpid(), "PORT": 9}
    pack = write_hostile_pack(folder / "pack", tricks, facts)
    scratch = folder / "scratch"
    scratch.mkdir()
    found = []
    async with OracleHost(
        pack.code(),
        level=level,
        deadlines=WorkerDeadlines(call_s=CALL_S),
        scratch=scratch,
    ) as host:
        for trick in tricks:
            late: list[float] = []
            async with anyio.create_task_group() as group:
                turns = iter(range(rounds))
                for _ in range(parallel):
                    group.start_soon(_work_off, turns, host, trick, late)
            found.append(_summed(level, trick, late))
    return found


async def _work_off(
    turns: Iterator[int], host: OracleHost, trick: Trick, late: list[float]
) -> None:
    for _ in turns:
        late.append(await late_ms(host, trick))


def _summed(level: str, trick: Trick, late: list[float]) -> Lateness:
    ordered = sorted(late)
    return Lateness(
        level,
        trick.name,
        len(ordered),
        statistics.median(ordered),
        ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
        ordered[-1],
        sum(moment <= AIM_MS for moment in ordered) / len(ordered),
    )


def as_text(found: Sequence[Lateness]) -> str:
    """Return the distribution as the lines that a terminal shows."""
    head = f"{'level':11} {'pack':32} {'n':>4} {'median':>8} {'p95':>8} {'max':>8}"
    lines = [f"{head}  within {AIM_MS:g} ms"]
    lines += [
        f"{each.level:11} {each.pack:32} {each.calls:4} {each.median_ms:8.1f} "
        f"{each.p95_ms:8.1f} {each.max_ms:8.1f}  {each.within_aim:.0%}"
        for each in found
    ]
    lines.append("milliseconds after the deadline until nothing of the session is left")
    return "\n".join(lines)


def main() -> int:
    """Play, print; 1 when a limit is given and a 95th percentile passes it."""
    parser = argparse.ArgumentParser(description="how late hostile calls are over")
    parser.add_argument("-n", type=int, default=10, help="calls a pack (default: 10)")
    parser.add_argument("--parallel", type=int, default=1, help="sessions at a time")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--packs", nargs="+", default=[], help="default: all")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--max-ms", type=float, help="exit 1 above this 95th percentile"
    )
    arguments = parser.parse_args()
    tricks = hanging_tricks(arguments.packs)
    offered = detect_sandbox()["levels"]
    found: list[Lateness] = []
    for level in arguments.levels:
        if not offered[level]["available"]:
            print(
                f"{level}: not to be had: {offered[level]['missing']}", file=sys.stderr
            )
            continue
        with tempfile.TemporaryDirectory() as folder:
            found += anyio.run(
                play, Path(folder), level, tricks, arguments.n, arguments.parallel
            )
    if arguments.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        print(as_text(found))
    limit = arguments.max_ms
    return int(limit is not None and any(each.p95_ms > limit for each in found))


if __name__ == "__main__":
    raise SystemExit(main())
