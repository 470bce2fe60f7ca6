"""One teacher-forced evaluation, from a config to a finished folder.

Refusals, evidence, result: in that order and each once. A finished folder is worked out
again from its evidence instead, without a socket. Whatever stops a run leaves a folder
that can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio

from harness.canonical import Json
from harness.causes import EXIT_DONE, EXIT_OVER_CAP
from harness.config.teacher_forced import TeacherForcedConfig
from harness.errors import ArtifactError
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.folder import FolderState, RunFolder
from harness.predictions.mlperf_agentic import EVENTS
from harness.run.committing import while_committed
from harness.run.credentials import api_keys
from harness.run.resuming import ResumingCandidate
from harness.run.seclusion import secluded
from harness.run.teacher_forced.collect import TurnCollector, TurnProgress
from harness.run.teacher_forced.frozen import freeze, read_frozen, request_plan
from harness.run.teacher_forced.publish import (
    EVIDENCE_NAME,
    ResultAgain,
    compare,
    publish,
)
from harness.run.teacher_forced.requests import RequestPlan
from harness.scoring.aggregate import STOPS_OVER_CAP

Watch = Callable[[TurnProgress], None]


@dataclass(frozen=True, slots=True)
class FinishedTurns:
    """A run that has its report."""

    report: dict[str, Json]
    replayed: bool

    @property
    def exit_status(self) -> int:
        """0, or 9 when too many turns are unanswered for a score to stand."""
        over_cap = STOPS_OVER_CAP in self.report["non_publication_reasons"]
        return EXIT_OVER_CAP if over_cap else EXIT_DONE


def evaluate_turns(
    config: TeacherForcedConfig, *, resume: bool, watch: Watch
) -> FinishedTurns:
    """Run, resume or replay; raise the FairtrialError that stops the run."""
    started = datetime.now(UTC)
    folder = RunFolder(config.paths.output_dir)
    if folder.enter(config.eval_config_hash, resume=resume) is FolderState.FINISHED:
        return _again(folder)
    keys = api_keys(config.candidates)
    plan = request_plan(config, config.paths.dataset)
    folder.create()
    with folder.lock(started_at=started.isoformat()):
        # Another process may have finished the folder before the lock was had.
        state = folder.enter(config.eval_config_hash, resume=resume)
        if state is FolderState.FINISHED:
            return _again(folder)
        inputs = freeze(folder, config)
        # A result that stands is never changed, so nothing is asked after it.
        if not (folder.path / EVENTS).exists():
            key = keys[config.candidate.alias]
            anyio.run(_collect, config, folder, plan, key, watch)
        report = publish(folder, inputs, plan, started=started)
    return FinishedTurns(report, replayed=False)


def replay_turns(folder: RunFolder) -> ResultAgain:
    """Work a finished run out again from its folder alone; opens no socket.

    Raises ArtifactError, EvidenceError or ScoringError where that cannot be done.
    """
    with secluded():
        inputs = read_frozen(folder)
        return compare(folder, inputs, request_plan(inputs.config, inputs.dataset))


def _again(folder: RunFolder) -> FinishedTurns:
    again = replay_turns(folder)
    if again.differences:
        raise ArtifactError.from_violations(again.differences)
    return FinishedTurns(again.report, replayed=True)


async def _collect(
    config: TeacherForcedConfig,
    folder: RunFolder,
    plan: RequestPlan,
    api_key: str | None,
    watch: Watch,
) -> None:
    from harness.candidates.chat_http import ChatHttpCandidate

    limits, endpoint = config.limits, plan.endpoint
    with CandidateLog.open(folder.file(EVIDENCE_NAME), writable=True) as log:
        live = ChatHttpCandidate(
            endpoint,
            api_key,
            candidate_timeout_s=limits.candidate_timeout_s,
            max_retries=limits.max_retries,
            recorder=log,
        )
        async with live:
            candidate = ResumingCandidate(live, log, endpoint.echo_reasoning)
            collector = TurnCollector(config, plan, candidate, watch)
            await while_committed([log.log], collector.collect)


def dry_run(config: TeacherForcedConfig) -> dict[str, Json]:
    """Pass every gate, write nothing, ask no candidate.

    Raises what would stop a run before its first request.
    """
    api_keys(config.candidates)
    plan = request_plan(config, config.paths.dataset)
    turns = [turn for each in plan.conversations for turn in each.turns]
    return {
        "status": "preflight_passed",
        "candidate_network_used": False,
        "eval_config_hash": config.eval_config_hash,
        "dataset": {
            "content_hash": config.dataset.content_hash,
            "conversations": len(plan.conversations),
            "turns": len(turns),
            "scorable_turns": sum(bool(turn.truth.names) for turn in turns),
        },
        "repeats": config.asking.repeats,
        "planned_turns": plan.turns,
    }
