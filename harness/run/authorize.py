"""The gates before the first request, and what they leave in the run folder.

Config, source and plan are handles: each is built from the one before. The folder
receives the resolved config, both gate reports and the plan with every task's script
and oracle facts, so that everything after this point needs the folder alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import anyio

from harness.benchmark.contamination import (
    EligiblePlan,
    authorize,
    write_plan_failure,
    write_plan_report,
)
from harness.benchmark.oracle_check import Probe
from harness.benchmark.pack_code import PackCode
from harness.benchmark.projection import project_task
from harness.benchmark.source import (
    VerifiedSource,
    verify_source,
    write_source_failure,
    write_source_report,
)
from harness.canonical import Json
from harness.config import EvalConfig
from harness.conversation.script import script_from_row
from harness.conversation.task import TASK_SPEC_VERSION, ExecutablePart, TaskSpec
from harness.errors import ContaminationError, SourceError
from harness.evidence.artifacts import write_json_artifact
from harness.evidence.folder import RunFolder
from harness.evidence.plan_file import (
    PLAN_VERSION,
    PlanFile,
    PlanHeader,
    PlannedCandidate,
    write_plan,
)
from harness.oracle.contracts import IsolationLevel, WorkerDeadlines, WorkerLimits
from harness.oracle.probe import ProbeReport
from harness.oracle.probe import probe as probe_pack


@dataclass(frozen=True, slots=True)
class Authorized:
    """A source and a plan that passed their gates."""

    source: VerifiedSource
    plan: EligiblePlan


def pass_gates(
    config: EvalConfig, folder: RunFolder | None, *, probe: Probe
) -> Authorized:
    """Verify the source and authorize the plan.

    `probe` asks a local pack what it offers. Reports go to `folder`; None (a dry
    run) writes nothing. Raises SourceError or ContaminationError after writing the
    failure file.
    """
    try:
        source = verify_source(config, probe=probe)
    except SourceError as error:
        if folder is not None:
            write_source_failure(folder.path, config, error)
        raise
    if folder is not None:
        write_source_report(folder.path, source)
    try:
        plan = authorize(config, source)
    except ContaminationError as error:
        if folder is not None:
            write_plan_failure(folder.path, config, source, error)
        raise
    if folder is not None:
        write_plan_report(folder.path, plan)
    return Authorized(source, plan)


def worker_deadlines(config: EvalConfig) -> WorkerDeadlines:
    """Return the deadline of each worker operation as the config states it."""
    limits = config.limits
    return WorkerDeadlines(
        import_s=limits.import_timeout_s,
        reset_s=limits.reset_timeout_s,
        call_s=limits.tool_timeout_s,
        state_s=limits.state_timeout_s,
        assertion_s=limits.assertion_timeout_s,
        close_s=limits.close_timeout_s,
    )


def worker_limits(config: EvalConfig) -> WorkerLimits:
    """Return what one worker may use as the config states it."""
    return WorkerLimits(**config.limits.worker.model_dump())


def throwaway_probe(
    config: EvalConfig, pack: PackCode, *, level: IsolationLevel
) -> ProbeReport:
    """Import the pack in a throwaway host, contained as a run would be."""
    return anyio.run(
        partial(
            probe_pack,
            pack,
            level=level,
            deadlines=worker_deadlines(config),
            limits=worker_limits(config),
        )
    )


def write_authorized(
    folder: RunFolder, config: EvalConfig, authorized: Authorized, *, now: datetime
) -> None:
    """Write the resolved config and the plan; on a resumed run they must be equal."""
    write_json_artifact(folder.file("resolved_eval_config"), config.resolved_document())
    path = folder.file("eval_plan")
    run_id = _new_run_id(now)
    if path.exists():
        with PlanFile.open(path) as known:
            run_id = known.header.facts["eval_run_id"]
    header = _header(config, authorized, run_id)
    write_plan(path, header, _task_specs(config, authorized))


def _new_run_id(now: datetime) -> str:
    return f"fairtrial-eval-{now:%Y%m%dT%H%M%S%fZ}-{uuid.uuid4().hex}"


def _header(config: EvalConfig, authorized: Authorized, run_id: str) -> PlanHeader:
    source, plan = authorized.source, authorized.plan
    planned = _planned(config, source, plan)
    return PlanHeader(
        schema_version=PLAN_VERSION,
        scope="trace_and_executable" if config.is_executable else "trace",
        plan_identity=plan.plan_identity,
        eval_config_hash=config.eval_config_hash,
        source_run_id=source.run_id,
        source_verification_identity=source.verification_identity,
        oracle_verification_identity=source.oracle_verification_identity,
        scoring_policy_hash=config.scoring_policy_hash,
        scoring_policy=config.scoring_policy,
        trials=config.eval.trials,
        task_ids=planned,
        candidates=tuple(
            PlannedCandidate(
                alias,
                config.candidate(alias).canonical_id,
                None if task_ids == planned else task_ids,
            )
            for alias in config.candidate_aliases
            for task_ids in [plan.task_ids_for(alias)]
        ),
        facts=_facts(plan, run_id),
    )


def _planned(
    config: EvalConfig, source: VerifiedSource, plan: EligiblePlan
) -> tuple[str, ...]:
    """Return all tasks that somebody is asked, in publication order."""
    asked = {
        task_id
        for alias in config.candidate_aliases
        for task_id in plan.task_ids_for(alias)
    }
    return tuple(task_id for task_id in source.task_ids if task_id in asked)


def _facts(plan: EligiblePlan, run_id: str) -> dict[str, Json]:
    return {
        "eval_run_id": run_id,
        "comparison_set": plan.comparison_set,
        "contamination_violations": [
            {"alias": candidate.alias, **collision.identity()}
            for candidate in plan.candidates
            for collision in candidate.having("match")
        ],
        "publication_allowed": plan.publication_allowed,
        "non_publication_reasons": list(plan.non_publication_reasons),
    }


def _task_specs(config: EvalConfig, authorized: Authorized) -> Iterator[TaskSpec]:
    """Yield the planned tasks in publication order, one row at a time."""
    source = authorized.source
    planned = frozenset(_planned(config, source, authorized.plan))
    for row in source.rows():
        if row["task_id"] in planned:
            yield _task_spec(source, row, executable=config.is_executable)


def _task_spec(
    source: VerifiedSource, row: dict[str, Json], *, executable: bool
) -> TaskSpec:
    script = script_from_row(row, source.verification_identity)
    part: ExecutablePart | None = None
    if executable:
        pack, oracle = source.pack, source.oracle_verification_identity
        if pack is None or oracle is None:
            raise AssertionError("an executable source is verified with its pack")
        part = project_task(
            pack, row, script, oracle, oracle_clock=source.manifest["oracle_clock"]
        )
        script = replace(
            script,
            turns=tuple(
                replace(
                    turn,
                    calls=tuple(
                        replace(call, recorded_result=None) for call in turn.calls
                    ),
                )
                for turn in script.turns
            ),
        )
    return TaskSpec(
        schema_version=TASK_SPEC_VERSION,
        script=script,
        template_id=row["template_id"],
        category=row["category"],
        difficulty=row["difficulty"],
        turn_policy=row["turn_policy"],
        slot_bindings=row.get("slot_bindings"),
        executable=part,
    )
