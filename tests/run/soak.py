"""Kill a run again and again at seeded moments; it must end as if nothing happened.

    python -m tests.run.soak --pack bank --trials 3 --kills 200 --seed 1

One undisturbed run gives the hashes. Then the same config in another folder is
started, killed with SIGKILL after a random number of requests or a random time, and
resumed, until the kills are used up; the last process may finish. The server's own
count proves that nothing was asked twice: all that it was sent is recorded, apart
from what was in flight when a kill came.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import anyio

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.evidence.candidate_log import CandidateLog
from harness.oracle.certifying import CertifyingOracle
from tests.run.gold_server import CountingControl

PARALLEL = 8
MODEL = "mixture"
LATEST_KILL_S = 1.5
"""Kills by the clock come within this time, most of them while the run starts."""


@dataclass
class Soaked:
    """What came of a soak."""

    kills: int
    starts: int
    equal: bool
    asked: int
    """Requests that the server received from the killed run."""
    recorded: int
    """Attempts that the run recorded."""
    completed_once: bool
    """Whether every completion took the first attempt that was recorded."""

    @property
    def unrecorded(self):
        """Requests in flight when a kill came."""
        return self.asked - self.recorded

    @property
    def passed(self):
        """Tell whether everything that must hold holds."""
        bounded = 0 <= self.unrecorded <= self.kills * PARALLEL
        return self.equal and self.completed_once and bounded


class Killer:
    """Kills one process at its n-th request or after a time."""

    def __init__(self):
        self.process = None
        self.at_request = None
        self.lock = threading.Lock()

    def __call__(self, number):
        if number == self.at_request:
            self.kill()

    def kill(self):
        with self.lock:
            if self.process is not None and self.process.poll() is None:
                os.kill(self.process.pid, signal.SIGKILL)


def make_benchmark(folder, pack_name):
    """Publish a bundled pack."""
    pack = load_pack(resolve_pack(pack_name))

    async def published():
        return await publish(pack, folder, oracle=CertifyingOracle())

    anyio.run(published)


def write_config(path, benchmark, pack_name, url, trials):
    """Write one executable config."""
    pack = resolve_pack(pack_name)
    write_starter_config(
        path,
        run_manifest=benchmark / "run_manifest.json",
        candidates=[starter_candidate(url, MODEL)],
        oracle=OracleFiles("python", pack / "manifest.yaml", pack / "backend.py"),
        output_dir=f"{path.stem}-run",
        trials=trials,
        changes={("limits", "max_parallel_tasks"): PARALLEL},
    )
    return path


def start(config, *words):
    """Start the command with its output in `<config>.log`."""
    with config.with_suffix(".log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "harness.cli", "run", str(config), *words],
            stdout=log,
            stderr=log,
        )


def aggregates(config):
    """Return the aggregate hashes of a config's finished run."""
    manifest = config.with_name(f"{config.stem}-run") / "eval_manifest.json"
    return json.loads(manifest.read_text())["candidate_aggregates"]


def soak(folder, benchmark, *, pack, trials, kills, seed, watch=lambda _: None):
    """Run undisturbed, then run killed `kills` times, and compare."""
    draw = random.Random(seed)
    killer = Killer()
    control = CountingControl(benchmark, killer)
    with control.served() as server:
        calm = write_config(folder / "calm.yaml", benchmark, pack, server.url, trials)
        if start(calm).wait() != 0:
            raise RuntimeError(calm.with_suffix(".log").read_text())
        planned = control.number
        control.number = 0
        killed = write_config(
            folder / "killed.yaml", benchmark, pack, server.url, trials
        )
        done, starts = 0, 0
        while True:
            starts += 1
            timer = plan_kill(killer, control, draw, planned, kills - done)
            killer.process = start(killed, "--resume")
            if timer is not None:
                timer.start()
            status = killer.process.wait()
            if timer is not None:
                timer.cancel()
            if status == 0:
                break
            if status != -signal.SIGKILL:
                raise RuntimeError(killed.with_suffix(".log").read_text()[-4000:])
            done += 1
            watch(done)
    attempts = recorded_attempts(killed.with_name("killed-run"))
    return Soaked(
        kills=done,
        starts=starts,
        equal=aggregates(killed) == aggregates(calm),
        asked=control.number,
        recorded=sum(attempts.values()),
        completed_once=set(attempts.values()) <= {1},
    )


def plan_kill(killer, control, draw, planned, left):
    """Choose the next kill's moment; None once they are used up."""
    killer.at_request = None
    if left <= 0:
        return None
    if draw.random() < 0.8:
        share = max(2, 2 * max(0, planned - control.number) // left)
        killer.at_request = control.number + draw.randrange(1, share)
        return None
    return threading.Timer(draw.uniform(0.0, LATEST_KILL_S), killer.kill)


def recorded_attempts(run):
    """Return the attempts of each completed request."""
    with CandidateLog.open(run / "candidate_io_cache.jsonl", writable=False) as log:
        return {
            entry.key: log.attempts_made(entry.key)
            for entry in log.log.entries()
            if entry.record_type == "completion"
        }


def main():
    """Soak once and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", default="bank")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairtrial-soak-") as name:
        folder = Path(name)
        make_benchmark(folder / "benchmark", options.pack)
        came = soak(
            folder,
            folder / "benchmark",
            pack=options.pack,
            trials=options.trials,
            kills=options.kills,
            seed=options.seed,
            watch=lambda done: print(f"\rkilled {done}", end="", file=sys.stderr),
        )
    print(f"\n{came}\nunrecorded {came.unrecorded}, passed {came.passed}")
    return 0 if came.passed else 1


if __name__ == "__main__":
    sys.exit(main())
