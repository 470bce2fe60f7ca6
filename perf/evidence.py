"""How fast evidence becomes scores again: replay, rescore, verify, beside the floor.

A finished trace run of workload W is made without a network: the conversations are
held by the driver with a candidate in this process, and everything is recorded and
published as in any run. Each reader then runs in a process of its own, at two sizes:
the slope between them is the rate without start-up, and the larger peak of memory
says whether it grows with the run. The floor reads and hashes the same bytes once.
Rates are episodes a CPU second. Only figures of one sitting mean anything.

    python perf/evidence.py                        # 100,000 episodes: half an hour
    python perf/evidence.py --episodes 5000 --json
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "perf")]

from endpoint import completion  # noqa: E402
from episodes import TASKS, fairtrial, write_config  # noqa: E402
from measure import Usage, measure  # noqa: E402
from workload import PACK  # noqa: E402

if TYPE_CHECKING:
    from harness.candidates.request import PreparedRequest
    from harness.evidence.candidate_log import CandidateLog
    from harness.evidence.episode import Outcome

SMALLER = 5
"""How many times smaller the first of the two sizes is."""
MIB = 1 << 20
RECORDS = 12
"""Records of an episode: four requests, each with its attempt and its completion."""
AIMS = {"replay": 4000, "rescore": 5000, "verify": 2500}
"""Episodes a CPU second that each reader is meant to reach."""
FLOOR = """
import hashlib, pathlib, sys
digest = hashlib.sha256()
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
print(digest.hexdigest())
"""


class InProcess:
    """Answers as the endpoint of workload W does, and records as a client does."""

    def __init__(self, log: CandidateLog) -> None:
        from harness.candidates.credential import Credential

        self._log = log
        self._credential = Credential(None)

    async def exchange(self, request: PreparedRequest, *, deadline: float) -> Outcome:
        """Answer one request."""
        from harness.candidates.attempts import attempt_of, response_of
        from harness.candidates.delivered import Delivered
        from harness.candidates.wire import classify
        from harness.evidence.episode import Outcome

        now = datetime.now(UTC)
        headers = {"content-type": "application/json"}
        delivery = Delivered(200, headers, completion(json.loads(request.body)))
        found = classify(200, headers, delivery.body, now=now)
        attempt = attempt_of(0, now, 0.25, found, delivery, self._credential)
        outcome = Outcome(
            request_hash=request.request_hash,
            status=found.outcome_status,
            wire_class=found.wire_class,
            detail_code=found.detail_code,
            response=response_of(found, attempt, delivery),
            attempt_count=1,
            replayed=False,
            detail=found.note,
        )
        self._log.request(request)
        self._log.attempt(request.request_hash, attempt)
        self._log.outcome(outcome)
        return outcome


def make_run(folder: Path, episodes: int) -> Path:
    """Write a finished trace run of workload W and return its folder."""
    from harness.config import load_config
    from harness.evidence.candidate_log import CandidateLog
    from harness.evidence.folder import RunFolder
    from harness.evidence.plan_file import PlanFile
    from harness.report.html import render_html
    from harness.run.authorize import pass_gates, throwaway_probe, write_authorized
    from harness.run.publish import CollectedRun, publish_run, task_table
    from harness.run.recorded import LiveEvidence
    from harness.run.score import score_run
    from harness.run.settings import RunSettings

    started = datetime.now(UTC)
    trials = max(1, episodes // TASKS)
    url = "http://127.0.0.1:9/v1"
    config = load_config(write_config(folder, f"w-{episodes}", url, "trace", trials))
    run = RunFolder(config.paths.output_dir)
    run.create()
    probe = partial(throwaway_probe, config)
    authorized = pass_gates(config, run, probe=probe)
    write_authorized(run, config, authorized, now=started)
    settings = RunSettings.from_resolved(config.resolved_document())
    with (
        CandidateLog.open(run.file("candidate_io_cache"), writable=True) as log,
        PlanFile.open(run.file("eval_plan")) as plan,
        task_table(run, wanted=True) as take_row,
    ):
        hold_all(config, plan, log)
        evidence = LiveEvidence(settings, plan, log, None)
        scored = score_run(evidence, take_row)
        collected = CollectedRun(plan.header, scored, evidence.files(), {})
    publish_run(
        run,
        collected,
        max_stop_share=settings.max_stop_share,
        started=started,
        render_page=lambda report: render_html(report, "run"),
    )
    return run.path


def hold_all(config: object, plan: object, log: CandidateLog) -> None:
    """Hold every planned conversation with the candidate in this process."""
    from harness.candidates.request import Endpoint
    from harness.conversation.driver import EpisodeRequest, drive
    from harness.run.recorded import concluded
    from harness.scoring.reading import ScorableTask

    candidate = InProcess(log)
    (planned,) = plan.header.candidates
    endpoint = Endpoint(**config.endpoint(planned.alias))
    for task in map(ScorableTask.of, plan.tasks_for(planned)):
        for trial in range(plan.header.trials):
            request = EpisodeRequest(
                task=task,
                endpoint=endpoint,
                policy=config.scoring_policy,
                plan_identity=plan.header.plan_identity,
                trial=trial,
                attempt=1,
                max_turns=config.limits.max_turns,
            )
            concluded(drive(request, candidate, deadline=math.inf))


Command = Callable[[Path, Path], list[str]]
READERS: dict[str, Command] = {
    "floor": lambda run, _: [sys.executable, "-I", "-S", "-c", FLOOR, str(run)],
    "replay": lambda run, _: fairtrial("replay", run, "--json"),
    "rescore": lambda run, new: fairtrial("rescore", run, "--output", new, "--json"),
    "verify": lambda run, _: fairtrial("verify", run, "--json"),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One reader at both sizes."""

    reader: str
    sizes: tuple[int, int]
    usages: tuple[Usage, Usage]

    @property
    def rate(self) -> float:
        """Episodes a CPU second, start-up left out."""
        cpu_s = self.usages[1].cpu_s - self.usages[0].cpu_s
        return (self.sizes[1] - self.sizes[0]) / max(cpu_s, 1e-6)

    @property
    def peaks_mib(self) -> tuple[float, float]:
        """Largest resident size at the smaller and the larger run."""
        small, large = self.usages
        return small.peak_process_bytes / MIB, large.peak_process_bytes / MIB

    @property
    def growth_bytes(self) -> float:
        """Bytes by which the largest resident size grows with each record."""
        low, high = self.peaks_mib
        records = RECORDS * (self.sizes[1] - self.sizes[0])
        return (high - low) * MIB / records


def read(reader: str, sizes: tuple[int, int], runs: list[Path], work: Path) -> Reading:
    """Measure one reader on both runs; stop at one that failed."""
    usages = []
    for size, run in zip(sizes, runs, strict=True):
        log = work / f"{reader}.log"
        command = READERS[reader](run, work / f"{reader}-{size}")
        usage = measure(command, cwd=ROOT, log=log, timeout_s=3600)
        if usage.exit_status:
            sys.exit(f"{reader} failed: {log.read_text()[-2000:]}")
        usages.append(usage)
    return Reading(reader, sizes, (usages[0], usages[1]))


def measured(episodes: int, readers: list[str]) -> tuple[int, list[Reading]]:
    """Make both runs and measure; return the larger one's bytes and the readings."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        command = fairtrial("publish", PACK, "--output", work / "benchmark")
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        wanted = (max(TASKS, episodes // SMALLER), episodes)
        sizes = (wanted[0] // TASKS * TASKS, max(2, wanted[1] // TASKS) * TASKS)
        runs = []
        for size in sizes:
            print(f"making a run of {size} episodes", file=sys.stderr)
            runs.append(make_run(work, size))
        size_bytes = sum(path.stat().st_size for path in runs[1].iterdir())
        return size_bytes, [read(reader, sizes, runs, work) for reader in readers]


def main() -> int:
    """Measure and print; 1 where a rate that was asked for is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", nargs="*", help="default: all, the floor first")
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--min-share", type=float, help="exit 1 below this share of an aim"
    )
    options = parser.parse_args()
    readers = options.reader or list(READERS)
    unknown = sorted(set(readers) - READERS.keys())
    if unknown:
        parser.error(f"no reader {unknown}; there are {list(READERS)}")
    size_bytes, readings = measured(options.episodes, readers)
    figures = {each.reader: figure(each) for each in readings}
    if options.json:
        print(json.dumps({"bytes": size_bytes, **figures}, sort_keys=True))
    else:
        show(size_bytes, readings)
    shares = [each.rate / AIMS[each.reader] for each in readings if each.reader in AIMS]
    limit = options.min_share
    return int(limit is not None and min(shares, default=1.0) < limit)


def figure(reading: Reading) -> dict[str, object]:
    """Return one reading as JSON."""
    return {
        "episodes": list(reading.sizes),
        "cpu_s": [round(usage.cpu_s, 3) for usage in reading.usages],
        "episodes_per_cpu_s": round(reading.rate),
        "peak_mib": [round(peak, 1) for peak in reading.peaks_mib],
        "growth_bytes_a_record": round(reading.growth_bytes, 1),
        "aim": AIMS.get(reading.reader),
    }


def show(size_bytes: int, readings: list[Reading]) -> None:
    """Print one line for each reader."""
    small, large = readings[0].sizes
    per_episode = size_bytes / large
    print(
        f"{large} episodes of 4 requests, {size_bytes / MIB:.0f} MiB, "
        f"{per_episode:.0f} bytes an episode; slope from {small}"
    )
    for each in readings:
        low, high = each.peaks_mib
        aim = AIMS.get(each.reader)
        print(
            f"  {each.reader:8} {each.rate:9.0f} episodes per CPU s, "
            f"CPU {each.usages[1].cpu_s:7.2f} s, "
            f"peak {low:.0f} MiB at {small}, {high:.0f} MiB at {large} "
            f"({each.growth_bytes:.0f} bytes a record)"
            + (f"; aim {aim}" if aim else "")
        )


if __name__ == "__main__":
    raise SystemExit(main())
