"""Where a drill plays: a scratch folder, a sabotaged pack, its benchmark, its config.

Deadlines are short, so that a hang costs seconds, and many episodes are in flight,
so that it delays nobody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from harness.benchmark.commit_marker import MANIFEST_FILE, PUBLISHED_FILE
from harness.benchmark.publication import publish
from harness.benchmark.tables import read_rows
from harness.candidates.control import ControlCandidate
from harness.canonical import Json
from harness.config import EvalConfig
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.drill.endpoint import MODEL
from harness.drill.layout import TaskLayout, layouts
from harness.drill.sabotage import OracleRecord, SabotagedPack, sabotaged_copy
from harness.drill.serving_faults import DRILL_KEY
from harness.errors import PackError
from harness.evidence.episode_log import EPISODE_LOG, stream_episodes
from harness.evidence.folder import RunFolder
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import read_task_rows
from harness.oracle.certifying import CertifyingOracle
from harness.oracle.contracts import IsolationLevel
from harness.run.evaluate import FinishedRun, evaluate_here

KEY_VARIABLE: Final = "FAIRTRIAL_DRILL_KEY"
LIMITS: Final[dict[str, Json]] = {
    "max_retries": 2,
    "max_parallel_tasks": 16,
    "max_stops": 1_000_000,
    "candidate_timeout_s": 2.2,
    "episode_timeout_s": 5.0,
    "import_timeout_s": 3.0,
    "reset_timeout_s": 1.5,
    "tool_timeout_s": 1.5,
    "state_timeout_s": 1.5,
    "assertion_timeout_s": 1.5,
    "close_timeout_s": 1.5,
}
"""Seconds and counts; an ordinary operation takes a hundredth of its limit."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that the rounds of one drill share."""

    folder: Path
    pack: SabotagedPack
    tasks: tuple[TaskLayout, ...]
    controls: ControlCandidate
    level: IsolationLevel

    def config(
        self,
        name: str,
        base_url: str,
        *,
        host: Literal["shared", "per_task"] = "shared",
        **limits: Json,
    ) -> EvalConfig:
        """Write the config of one round and return it as loaded."""
        paths = self.pack.pack.manifest.paths
        changes: dict[tuple[str | int, ...], Json] = {
            ("limits", key): value for key, value in (LIMITS | limits).items()
        }
        changes["isolation", "host"] = host
        changes["isolation", "level"] = self.level
        return write_starter_config(
            self.folder / f"{name}.yaml",
            run_manifest=self.folder / "benchmark" / MANIFEST_FILE,
            candidates=[starter_candidate(base_url, MODEL, api_key_env=KEY_VARIABLE)],
            oracle=OracleFiles(
                "python", self.pack.pack.root / "manifest.yaml", paths["backend"]
            ),
            output_dir=f"{name}-run",
            changes=changes,
        )

    def record_file(self, name: str) -> Path:
        """Return where the workers of one round write their own record."""
        return self.folder / f"{name}.oracle.jsonl"

    def record(self, name: str) -> OracleRecord:
        """Return what the workers of one round wrote, or printed."""
        if self.level == "process":
            return OracleRecord.read(self.record_file(name))
        log = self.folder / f"{name}-run" / EPISODE_LOG.file_name
        return OracleRecord.printed(
            episode.execution.worker.get("output", "")
            for _, episode in stream_episodes(log)
            if episode.execution is not None
        )


async def set_stage(original: Path, folder: Path, level: IsolationLevel) -> Stage:
    """Copy, certify and publish the pack; raise PackError if it is not gold."""
    pack = sabotaged_copy(original, folder / "pack")
    published = await publish(
        pack.pack, folder / "benchmark", oracle=CertifyingOracle()
    )
    if not published.gold_eligible:
        raise PackError(
            "pack_not_gold",
            "a drill needs a pack whose own tasks succeed",
            where=str(original),
            expected="a gold pack",
            actual=f"tier {published.tier}",
            recovery="`fairtrial pack check` shows what is wrong with the pack",
        )
    rows = list(read_rows(folder / "benchmark" / PUBLISHED_FILE))
    tasks = layouts(pack.pack, rows)
    return Stage(folder, pack, tasks, ControlCandidate(rows), level)


async def run_whole(config: EvalConfig) -> FinishedRun:
    """Run or resume as the command does; raise what stops the run."""
    with _drill_key():
        return await evaluate_here(
            config,
            resume=True,
            watch=lambda _: None,
            render_page=lambda _: "<!doctype html>\n",
        )


@contextmanager
def _drill_key() -> Iterator[None]:
    known = os.environ.get(KEY_VARIABLE)
    os.environ[KEY_VARIABLE] = DRILL_KEY
    try:
        yield
    finally:
        if known is None:
            del os.environ[KEY_VARIABLE]
        else:
            os.environ[KEY_VARIABLE] = known


def rows_of(config: EvalConfig) -> list[TaskRow]:
    """Return the task table of a finished run."""
    folder = RunFolder(config.paths.output_dir)
    return list(read_task_rows(folder.file("eval_task_results")))
