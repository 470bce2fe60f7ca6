"""Whole runs of one hostile pack that is honest while it is certified."""

import os

from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.run.evaluate import evaluate
from tests.benchmark.shop import published
from tests.hostile.pack_folders import write_hostile_pack


class Published:
    """A published pack whose run, benchmark and config lie in one folder.

    The folder has the places that tricks call OUTSIDE: `benchmark/`, `run/` and
    `written/`. A run plays the trick that its number, as part of the deadline, names.
    """

    def __init__(self, folder, tricks):
        self.folder = folder
        self.deadlines = {
            trick.name: 2 + number / 100 for number, trick in enumerate(tricks, 1)
        }
        facts = {"OUTSIDE": str(folder), "EVALUATOR": os.getpid()}
        by_deadline = {seconds: name for name, seconds in self.deadlines.items()}
        self.pack = write_hostile_pack(folder / "pack", tricks, facts, by_deadline)
        published(self.pack, folder / "benchmark")

    @property
    def table(self):
        """The published benchmark."""
        return self.folder / "benchmark" / "benchmark.parquet"

    @property
    def output(self):
        """The output folder of a run."""
        return self.folder / "run"

    def config(self, base_url, *, trick=None, level="process", key=None, changes=None):
        """Write and load a config of a run that plays one trick, or none."""
        file = self.folder / "eval.yaml"
        file.unlink(missing_ok=True)
        deadline = 5.0 if trick is None else self.deadlines[trick]
        pack = self.pack.root
        return write_starter_config(
            file,
            run_manifest=self.folder / "benchmark" / "run_manifest.json",
            candidates=[starter_candidate(base_url, "gold", api_key_env=key)],
            oracle=OracleFiles("python", pack / "manifest.yaml", pack / "backend.py"),
            output_dir="run",
            changes={
                ("isolation", "level"): level,
                ("limits", "tool_timeout_s"): deadline,
                ("limits", "max_parallel_tasks"): 1,
                ("limits", "max_retries"): 0,
                **(changes or {}),
            },
        )

    def run(self, config):
        """Evaluate it and return the finished run."""
        return evaluate(
            config, resume=False, watch=lambda _: None, render_page=lambda _: "<p>\n"
        )
