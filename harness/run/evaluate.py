"""One evaluation, from a config to a finished folder.

Gates, evidence, arithmetic, artifacts: in that order and each once. A finished
folder is replayed instead, an unfinished one goes on with `resume`. Whatever stops a
run leaves a folder that can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

import anyio
import anyio.to_thread

from harness.benchmark.contamination import assert_plan_unchanged
from harness.benchmark.oracle_check import Probe
from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.causes import EXIT_DONE, EXIT_OVER_CAP
from harness.config import EvalConfig
from harness.errors import ArtifactError
from harness.evidence.candidate_log import CandidateLog, check_bodies
from harness.evidence.episode_log import EpisodeLog
from harness.evidence.folder import FolderState, RunFolder
from harness.evidence.lock import RunLock
from harness.evidence.plan_file import PlanFile, PlannedCandidate
from harness.oracle.contracts import PackHost
from harness.run.authorize import (
    Authorized,
    pass_gates,
    throwaway_probe,
    write_authorized,
)
from harness.run.collect import Collector, Progress
from harness.run.committing import accompanied, while_committed
from harness.run.credentials import api_keys
from harness.run.live_scoring import LiveScoring
from harness.run.publish import (
    CollectedRun,
    discard_unfinished,
    publish_run,
    task_table,
)
from harness.run.recorded import LiveEvidence
from harness.run.replay import Replayed, replay_run
from harness.run.resuming import ResumingCandidate, stops_recorded
from harness.run.run_oracle import RunOracle, confirm
from harness.run.settings import RunSettings
from harness.scoring.aggregate import STOPS_OVER_CAP
from harness.scoring.reading import ScorableTask

Watch = Callable[[Progress], None]
RenderPage = Callable[[Mapping[str, Json]], str]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has its report."""

    report: dict[str, Json]
    replayed: bool

    @property
    def exit_status(self) -> int:
        """0, or 9 when too many episodes stopped for a score to stand."""
        over_cap = STOPS_OVER_CAP in self.report["non_publication_reasons"]
        return EXIT_OVER_CAP if over_cap else EXIT_DONE


def evaluate(
    config: EvalConfig, *, resume: bool, watch: Watch, render_page: RenderPage
) -> FinishedRun:
    """Run, resume or replay; raise the FairtrialError that stops the run."""
    run = _Run.entered(config, resume=resume)
    if isinstance(run, FinishedRun):
        return run
    with run.lock():
        return run.published(anyio.run(run.collected, watch), render_page)


async def evaluate_here(
    config: EvalConfig, *, resume: bool, watch: Watch, render_page: RenderPage
) -> FinishedRun:
    """Evaluate beside what else this event loop does; reading and writing stall it."""
    run = _Run.entered(config, resume=resume)
    if isinstance(run, FinishedRun):
        return run
    with run.lock():
        return run.published(await run.collected(watch), render_page)


def _replayed(folder: RunFolder) -> Replayed:
    """Replay a finished folder; raise ArtifactError where it says something else."""
    replayed = replay_run(folder.path)
    if not replayed.is_equal:
        raise ArtifactError(
            "eval_cli_artifact_conflict",
            "the finished folder states something else than its evidence gives",
            violations=replayed.differences,
        )
    return replayed


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is not finished yet, with the folder that it may use."""

    config: EvalConfig
    folder: RunFolder
    keys: Mapping[str, str | None]
    started: datetime

    @classmethod
    def entered(cls, config: EvalConfig, *, resume: bool) -> Self | FinishedRun:
        """Begin the run, or replay the finished one that the folder holds."""
        started = datetime.now(UTC)
        folder = RunFolder(config.paths.output_dir)
        if folder.enter(config.eval_config_hash, resume=resume) is FolderState.FINISHED:
            return FinishedRun(_replayed(folder).report, replayed=True)
        keys = api_keys(config.candidates)
        folder.create()
        return cls(config, folder, keys, started)

    def lock(self) -> RunLock:
        return self.folder.lock(started_at=self.started.isoformat())

    async def collected(self, watch: Watch) -> CollectedRun:
        """Pass the gates and collect; raise what stops the run."""
        config, folder = self.config, self.folder
        async with AsyncExitStack() as stack:
            oracle = RunOracle(config, stack)
            # In a thread, so that the loop can serve the oracle that the gates ask.
            gates = partial(_authorized, config, folder, oracle.probe, self.started)
            passing = partial(anyio.to_thread.run_sync, gates)
            authorized = await accompanied(oracle.answer, passing)
            pack = authorized.source.pack
            host = None if pack is None else await oracle.host(pack)
            collected = await _collect_all(
                config, folder, authorized, host, self.keys, watch
            )
        authorized.source.assert_unchanged()
        return collected

    def published(
        self, collected: CollectedRun, render_page: RenderPage
    ) -> FinishedRun:
        """Write report, page, record and manifest."""
        report = publish_run(
            self.folder,
            collected,
            max_stop_share=self.config.publication.max_stop_share,
            started=self.started,
            render_page=render_page,
        )
        return FinishedRun(report, replayed=False)


def _authorized(
    config: EvalConfig, folder: RunFolder, probe: Probe, started: datetime
) -> Authorized:
    authorized = pass_gates(config, folder, probe=probe)
    write_authorized(folder, config, authorized, now=started)
    discard_unfinished(folder)
    return authorized


async def _collect_all(
    config: EvalConfig,
    folder: RunFolder,
    authorized: Authorized,
    host: PackHost | None,
    keys: Mapping[str, str | None],
    watch: Watch,
) -> CollectedRun:
    """Collect every candidate's evidence, and score it meanwhile."""
    source = authorized.source
    with ExitStack() as stack:
        log = stack.enter_context(
            CandidateLog.open(
                folder.file("candidate_io_cache"), writable=True, visit=check_bodies
            )
        )
        episodes = None
        if host is not None:
            episodes = stack.enter_context(
                EpisodeLog.open(folder.file("tool_trace_cache"), writable=True)
            )
        plan = stack.enter_context(PlanFile.open(folder.file("eval_plan")))
        logs = [log.log] if episodes is None else [log.log, episodes.log]
        source.assert_unchanged()
        assert_plan_unchanged(authorized.plan, config, source)
        settings = RunSettings.from_resolved(config.resolved_document())
        evidence = LiveEvidence(settings, plan, log, episodes)
        take_row = stack.enter_context(
            task_table(folder, wanted=settings.write_task_results)
        )
        scoring = LiveScoring(evidence, take_row)
        work = _Work(
            config,
            plan,
            log,
            episodes,
            host,
            keys,
            source.assert_stat_unchanged,
            watch,
            scoring.recorded.add,
            stops_recorded(log, episodes) > config.limits.max_stops,
        )
        collecting = partial(while_committed, logs, partial(_candidates, work))
        await accompanied(scoring.run, collecting)
        if host is not None and source.pack is not None:
            await confirm(host, source.pack)
        scored = scoring.result()
        applied = {} if host is None else host.applied
        return CollectedRun(plan.header, scored, evidence.files(), applied)


@dataclass(frozen=True, slots=True)
class _Work:
    """What all candidates of a run share."""

    config: EvalConfig
    plan: PlanFile
    log: CandidateLog
    episodes: EpisodeLog | None
    host: PackHost | None
    keys: Mapping[str, str | None]
    check_source: Callable[[], None]
    watch: Watch
    note_recorded: Callable[[int], None]
    """Is told of each episode, by its place in the plan, once it is recorded."""
    gave_up: bool
    """Whether an earlier process gave the run up at its limit of stops."""


async def _candidates(work: _Work) -> None:
    """Ask one candidate after the other; raise what stops the run."""
    stops = done = 0
    for planned in work.plan.header.candidates:
        collector = await _one_candidate(work, planned, stops, done)
        stops += collector.stops
        done += collector.done


async def _one_candidate(
    work: _Work, planned: PlannedCandidate, stops_before: int, done_before: int
) -> Collector:
    endpoint = Endpoint(**work.config.endpoint(planned.alias))
    limits = work.config.limits
    live = ChatHttpCandidate(
        endpoint,
        work.keys[endpoint.alias],
        candidate_timeout_s=limits.candidate_timeout_s,
        max_retries=limits.max_retries,
        recorder=work.log,
    )
    task_count = len(work.plan if planned.task_ids is None else planned.task_ids)
    async with live:
        collector = Collector(
            config=work.config,
            endpoint=endpoint,
            candidate=ResumingCandidate(
                live, work.log, endpoint.echo_reasoning, work.gave_up
            ),
            plan_identity=work.plan.header.plan_identity,
            planned=task_count * work.plan.header.trials,
            episodes=work.episodes,
            host=work.host,
            check_source=work.check_source,
            watch=work.watch,
            gave_up=work.gave_up,
            stops_before=stops_before,
            note_recorded=lambda place: work.note_recorded(done_before + place),
        )
        tasks = map(ScorableTask.of, work.plan.tasks_for(planned))
        await collector.collect(tasks)
    return collector


def dry_run(config: EvalConfig) -> dict[str, Any]:
    """Pass every gate, write nothing, ask no candidate (spec 3.1).

    Raises CandidateError where a run would miss a key, as the run itself does.
    """
    api_keys(config.candidates)
    authorized = pass_gates(config, None, probe=partial(throwaway_probe, config))
    plan, oracle = authorized.plan, authorized.source.oracle
    return {
        "status": "preflight_passed",
        "candidate_network_used": False,
        "eval_config_hash": config.eval_config_hash,
        "plan_identity": plan.plan_identity,
        "authorized_tasks": {
            alias: len(plan.task_ids_for(alias)) for alias in config.candidate_aliases
        },
        "trials": config.eval.trials,
        "oracle_probed": oracle is not None and oracle.probed,
        "publication_allowed": plan.publication_allowed,
        "non_publication_reasons": list(plan.non_publication_reasons),
    }
