"""CPU of the oracle alone: sessions of workload W, split into who spent it.

Opens sessions as executable mode does (reset, a mutating call between two state
hashes, two reads, final state, assertion, close) against one pack host. Informational.
`client` is this process, `host` the pack host, `workers` all that it forked and reaped.
Only ratios of one sitting mean anything: run an older tree's copy in turns with this.

    python perf/sessions.py -n 500 --parallel 16 --levels process confined namespaces
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import anyio
from workload import PACK, facts

from harness.benchmark.pack import load_pack
from harness.oracle.contracts import SessionContext
from harness.oracle.host import OracleHost
from harness.oracle.sandbox import detect_sandbox
from oracle_workers.processes import children

LEVELS = ("process", "confined", "namespaces")
CLOCK = "2026-01-01T09:00:00+00:00"
EPISODE_S = 60.0
WARM_UP = 20
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent until one moment; CPU in seconds, page faults as counts."""

    client_s: float
    host_s: float
    workers_s: float
    host_faults: int
    workers_faults: int


@dataclass(frozen=True, slots=True)
class SessionCost:
    """What one session cost at one level, in milliseconds of CPU and page faults."""

    level: str
    sessions: int
    client_ms: float
    host_ms: float
    workers_ms: float
    host_faults: float
    workers_faults: float

    @property
    def total_ms(self) -> float:
        """Everything together."""
        return self.client_ms + self.host_ms + self.workers_ms


def spent(host_pid: int) -> Spent:
    """Read the clocks of this process, the host and its reaped workers."""
    text = Path(f"/proc/{host_pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    on_cpu_ns = int(Path(f"/proc/{host_pid}/schedstat").read_text().split()[0])
    return Spent(
        time.process_time(),
        on_cpu_ns / 1e9,
        (int(fields[13]) + int(fields[14])) / _TICKS,
        int(fields[7]),
        int(fields[8]),
    )


async def hold(host: OracleHost, number: int) -> None:
    """Hold one session of workload W and make sure of its end."""
    source, target, cents = facts(number)
    slots = {"source": source, "target": target, "cents": cents}
    session = await host.open_session(
        SessionContext(f"w-{number:06d}", number, CLOCK),
        deadline=anyio.current_time() + EPISODE_S,
    )
    await session.reset()
    session.foresee_call("move_money", dict(slots), turn_index=2)
    before = await session.state_hash()
    await session.call_tool("move_money", dict(slots), turn_index=2)
    after = await session.state_hash()
    await session.call_tool("read_balance", {"account": source}, turn_index=6)
    await session.call_tool("list_movements", {"account": target}, turn_index=6)
    judged = ["assert_moved_exactly_once"]
    session.foresee_end(judged, {"slots": slots})
    final = await session.state_hash()
    verdict = await session.run_assertion(judged[0], {"slots": slots})
    await session.close()
    if verdict.status != "passed" or before == after or after != final:
        raise SystemExit(f"session {number} went wrong: {verdict}")


async def _work_off(numbers: Iterator[int], host: OracleHost) -> None:
    for number in numbers:
        await hold(host, number)


async def play(level: str, sessions: int, parallel: int) -> SessionCost:
    """Hold all sessions at one level, `parallel` at a time, in one host."""
    async with OracleHost(load_pack(PACK).code(), level=level) as host:
        await _work_off(iter(range(WARM_UP)), host)
        (host_pid,) = children(host.keeper_pid)
        first = spent(host_pid)
        numbers = iter(range(sessions))
        async with anyio.create_task_group() as group:
            for _ in range(parallel):
                group.start_soon(_work_off, numbers, host)
        last = spent(host_pid)

    def per_session(name: str) -> float:
        return (getattr(last, name) - getattr(first, name)) / sessions

    return SessionCost(
        level,
        sessions,
        1000 * per_session("client_s"),
        1000 * per_session("host_s"),
        1000 * per_session("workers_s"),
        per_session("host_faults"),
        per_session("workers_faults"),
    )


def as_text(found: Sequence[SessionCost]) -> str:
    """Return the costs as the lines that a terminal shows."""
    lines = ["level         client    host  workers    total   faults: host  workers"]
    lines += [
        f"{each.level:11} {each.client_ms:8.2f} {each.host_ms:7.2f} "
        f"{each.workers_ms:8.2f} {each.total_ms:8.2f} "
        f"{each.host_faults:14.0f} {each.workers_faults:8.0f}"
        for each in found
    ]
    lines.append("milliseconds of CPU and page faults, a session")
    return "\n".join(lines)


def middle(rounds: Sequence[SessionCost]) -> SessionCost:
    """Return the round of the median total."""
    wanted = statistics.median_low(each.total_ms for each in rounds)
    return next(each for each in rounds if each.total_ms == wanted)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="CPU of sessions without a candidate")
    parser.add_argument("-n", type=int, default=500, help="sessions (default: 500)")
    parser.add_argument("--parallel", type=int, default=16, help="sessions at a time")
    parser.add_argument(
        "--rounds", type=int, default=1, help="show the median of these"
    )
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=["process"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    offered = detect_sandbox()["levels"]
    found = []
    for level in options.levels:
        if not offered[level]["available"]:
            missing = offered[level]["missing"]
            print(f"{level}: not to be had: {missing}", file=sys.stderr)
            continue
        rounds = [
            anyio.run(play, level, options.n, options.parallel)
            for _ in range(options.rounds)
        ]
        found.append(middle(rounds))
    if options.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        print(as_text(found))


if __name__ == "__main__":
    main()
