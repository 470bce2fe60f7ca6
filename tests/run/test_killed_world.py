"""A worker or the pack host is killed: the episode is held again and counts once."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from harness.evidence.episode_log import EpisodeLog
from harness.verification.extras import all_extras
from harness.verification.verify import verify
from tests.run.gold_server import CountingControl

SLAYINGS = 3


def parents():
    """The parent of every process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        found[int(path.parent.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def generations(root):
    """Descendants of a process by how far they are from it."""
    known = parents()
    levels, level = [], [root]
    while level:
        level = [pid for pid, parent in known.items() if parent in level]
        levels.append(level)
    return levels[:-1]


class Slayer:
    """Kills the newest process of a generation at some requests."""

    def __init__(self, generation):
        self.generation = generation
        self.wanted = False
        self.killed = 0
        self.lock = threading.Lock()

    def __call__(self, number):
        with self.lock:
            if number % 11 == 0 and self.killed < SLAYINGS:
                self.wanted = True
            if self.wanted:
                self.strike()

    def strike(self):
        levels = generations(os.getpid())
        # A keeper starts the host, and the host forks the workers.
        if len(levels) == 3 and levels[self.generation]:
            os.kill(max(levels[self.generation]), signal.SIGKILL)
            self.killed += 1
            self.wanted = False


def aggregate_hashes(folder):
    return json.loads((folder / "eval_manifest.json").read_text())[
        "candidate_aggregates"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("generation", [2, 1], ids=["worker", "host"])
def test_killed_worlds_leave_the_hashes_of_an_undisturbed_run(
    bench, benchmark, generation
):
    slayer = Slayer(generation)
    control = CountingControl(benchmark)
    with control.served() as server:
        # One episode at a time: what is killed waits for the candidate's answer, and
        # no call is under way.
        parts = {
            "executable": True,
            "base_url": server.url,
            "limits": {"max_parallel_tasks": 1},
        }
        bench.run(bench.config("mixture", name="calm", **parts))
        asked, control.number = control.number, 0
        control.disturb = slayer
        bench.run(bench.config("mixture", name="killed", **parts))

    assert slayer.killed == SLAYINGS
    assert aggregate_hashes(bench.output("killed")) == aggregate_hashes(
        bench.output("calm")
    )
    assert control.number == asked
    assert verify(bench.output("killed"), all_extras()).is_intact
    with EpisodeLog.open(
        bench.output("killed") / "tool_trace_cache.jsonl", writable=False
    ) as log:
        ends = sum(entry.record_type == "completion" for entry in log.log.entries())
    planned = bench.report("killed")["candidates"][0]["task_count"]
    assert ends > planned, "the killed attempts are evidence too"
