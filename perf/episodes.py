"""Workload W through fairtrial, complete, against a floor driver in the same sitting.

Complete means: source verified, pack contained, one forked worker an episode (or the
trace mode without), every byte of evidence on disk, scores, artifacts, replayable. The
floor (`floor.py`) only holds the conversation and keeps a log. Figures are CPU seconds
of the whole process tree with start-up included; the slope between the two largest
sizes leaves start-up out. Only ratios of one sitting mean anything.

    pip install aiohttp orjson uvloop      # the floor's client, a faster endpoint
    python perf/episodes.py --sizes 500 2000 --rounds 3
    python perf/episodes.py --sizes 500 --latency 0.2
    python perf/episodes.py --sizes 500 --peer OTHER/bin/python   # has inspect-ai
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Usage, measure, median
from workload import PACK, REQUESTS_PER_EPISODE

HERE = Path(__file__).parent
TASKS = 250
PARALLEL = 64
MB = 1 << 20


@contextmanager
def endpoint(latency_s: float) -> Iterator[str]:
    """Serve workload W; yield the base URL."""
    command = [sys.executable, str(HERE / "endpoint.py"), "--latency", str(latency_s)]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def fairtrial(*words: object) -> list[str]:
    """Return the command line of one fairtrial command."""
    return [sys.executable, "-m", "harness.cli", *map(str, words)]


def write_config(folder: Path, name: str, url: str, mode: str, trials: int) -> Path:
    """Write the config of one run and return its path."""
    from harness.config.starter import (
        OracleFiles,
        starter_candidate,
        write_starter_config,
    )

    path = folder / f"{name}.yaml"
    write_starter_config(
        path,
        run_manifest=folder / "benchmark" / "run_manifest.json",
        candidates=[starter_candidate(url, "w")],
        oracle=OracleFiles("python", PACK / "manifest.yaml", PACK / "backend.py")
        if mode == "executable"
        else None,
        output_dir=f"{name}-run",
        trials=trials,
        changes={("limits", "max_parallel_tasks"): PARALLEL},
    )
    return path


def evidence_bytes(run: Path) -> int:
    """Return what the run's logs take on disk."""
    return sum(path.stat().st_size for path in run.glob("*_cache.jsonl"))


def count_fsyncs(config: Path) -> int:
    """Run once in a process that counts its own fsyncs."""
    command = [sys.executable, __file__, "--count-fsyncs", str(config)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return int(done.stdout.splitlines()[-1])


def run_counting(config: str) -> None:
    """Run the command with a counter around `os.fsync`; print the count last."""
    from harness.cli.main import main as main_of_fairtrial

    count = 0
    sync = os.fsync

    def counted(descriptor: int) -> None:
        nonlocal count
        count += 1
        sync(descriptor)

    os.fsync = counted
    if status := main_of_fairtrial(["run", config, "--json"]):
        sys.exit(status)
    print(count)


def measured(command: list[str], folder: Path) -> Usage:
    """Measure one command; stop at one that failed."""
    usage = measure(command, cwd=folder, log=folder / "log")
    if usage.exit_status:
        sys.exit(f"{command} failed: {(folder / 'log').read_text()[-2000:]}")
    return usage


def main() -> None:
    """Print one row for each program and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.0, metavar="S")
    parser.add_argument("--modes", nargs="+", default=["executable", "trace"])
    parser.add_argument("--no-floor", action="store_true")
    parser.add_argument(
        "--peer", metavar="PYTHON", help="an interpreter that has inspect-ai and openai"
    )
    parser.add_argument("--count-fsyncs", metavar="CONFIG", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count_fsyncs:
        run_counting(options.count_fsyncs)
        return
    with (
        tempfile.TemporaryDirectory() as name,
        endpoint(options.latency) as url,
    ):
        folder = Path(name)
        measured(fairtrial("publish", PACK, "--output", "benchmark"), folder)
        for mode in options.modes:
            measure_mode(options, folder, url, mode)


def measure_mode(
    options: argparse.Namespace, folder: Path, url: str, mode: str
) -> None:
    """Measure one mode at every size, fairtrial and floor in turns."""
    workers = "fork" if mode == "executable" else "none"
    last: dict[str, tuple[int, float]] = {}
    for size in options.sizes:
        ours, floors, peers = [], [], []
        for number in range(options.rounds):
            label = f"{mode}-{size}-{number}"
            config = write_config(folder, label, url, mode, size // TASKS)
            ours.append(measured(fairtrial("run", config, "--json"), folder))
            if not options.no_floor:
                floor = [sys.executable, str(HERE / "floor.py"), "--url", url]
                floor += ["-n", str(size), "-c", str(PARALLEL), "--workers", workers]
                floors.append(measured(floor, folder))
            if options.peer:
                peer = [options.peer, str(HERE / "peer_inspect.py"), "--url", url]
                peer += ["-n", str(size), "-c", str(PARALLEL)]
                peers.append(measured(peer, folder))
        config = write_config(folder, f"{mode}-{size}-sync", url, mode, size // TASKS)
        fsyncs = count_fsyncs(config)
        stored = evidence_bytes(folder / f"{mode}-{size}-sync-run")
        episodes = size // TASKS * TASKS
        print(f"\n{mode}, {episodes} episodes, median of {options.rounds}")
        show("fairtrial", median(ours), episodes, options.latency, last)
        if floors:
            show(f"floor ({workers})", median(floors), size, options.latency, last)
            ratio = median(ours).cpu_s / median(floors).cpu_s
            print(f"  CPU fairtrial / floor: {ratio:.2f}")
        if peers:
            show("Inspect AI", median(peers), size, options.latency, last)
            ratio = median(peers).cpu_s / median(ours).cpu_s
            print(f"  CPU Inspect AI / fairtrial: {ratio:.1f}")
        print(f"  fsyncs an episode: {fsyncs / episodes:.3f}")
        print(f"  evidence bytes an episode: {stored / episodes:.0f}")


def show(
    program: str,
    usage: Usage,
    episodes: int,
    latency_s: float,
    last: dict[str, tuple[int, float]],
) -> None:
    """Print what one program cost."""
    ideal = episodes * REQUESTS_PER_EPISODE * latency_s / PARALLEL
    line = (
        f"  {program:14s} CPU {usage.cpu_s:7.2f} s, "
        f"{1000 * usage.cpu_s / episodes:6.2f} ms an episode, "
        f"wall {usage.wall_s:6.2f} s, "
        f"largest process {usage.peak_process_bytes / MB:.0f} MB"
    )
    if ideal:
        line += f", ideal wall {ideal:.2f} s ({usage.wall_s / ideal:.2f} x)"
    if program in last:
        before, cpu_s = last[program]
        slope = 1000 * (usage.cpu_s - cpu_s) / (episodes - before)
        line += f", slope {slope:.2f} ms"
    last[program] = (episodes, usage.cpu_s)
    print(line, flush=True)


if __name__ == "__main__":
    main()
