"""The three kinds of rounds: faulty episodes, faulty imports, and a broken run.

The last one takes one run through everything that stops or damages a whole run, one
after the other, and resumes it each time; it has to end as if nothing had happened.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from harness.causes import CAUSES
from harness.config import EvalConfig
from harness.drill import cells, tearing
from harness.drill.booking import (
    Entry,
    Findings,
    book_controls,
    book_round,
    cell_of,
    check_ledger,
)
from harness.drill.cells import SUCCESS, Cell
from harness.drill.endpoint import DrillEndpoint, Line, connected
from harness.drill.schedule import Round
from harness.drill.stage import Stage, rows_of, run_whole
from harness.errors import FairtrialError
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import RunFolder

FEW_STOPS: Final = 3
IMPORT_TIMEOUT_S: Final = 2.0
IMPORTS_AT_ONCE: Final = 6
"""Fewer than elsewhere: each of these sessions imports the pack anew."""
_WENT_ON: Final = Cell("run", "run.finished", "nobody")


async def play(stage: Stage, plan: Round, findings: Findings) -> None:
    """Play one round and book what came of it."""
    kinds: dict[str, Callable[[Stage, Round, Findings], Awaitable[None]]] = {
        "episodes": _episodes,
        "imports": _imports,
        "run": _broken_run,
    }
    await kinds[plan.kind](stage, plan, findings)
    stage.pack.rest()


def _name(plan: Round) -> str:
    return f"round-{plan.number:03}"


async def _episodes(stage: Stage, plan: Round, findings: Findings) -> None:
    name = _name(plan)
    endpoint = DrillEndpoint.of(stage.controls, stage.tasks, plan.serving)
    stage.pack.plan_faults(stage.record_file(name), plan.oracle)
    async with connected(endpoint) as line:
        config = stage.config(name, line.base_url)
        finished = await run_whole(config)
    book_round(
        plan,
        rows_of(config),
        finished.report["candidates"][0],
        endpoint,
        stage.record(name),
        findings,
    )


async def _imports(stage: Stage, plan: Round, findings: Findings) -> None:
    """Spoil imports: a worker that does not come up belongs to no task yet."""
    name = _name(plan)
    endpoint = DrillEndpoint(stage.controls, {})
    stage.pack.plan_faults(stage.record_file(name), (), dict(plan.imports))
    async with connected(endpoint) as line:
        config = stage.config(
            name, line.base_url, host="per_task", max_parallel_tasks=IMPORTS_AT_ONCE
        )
        finished = await run_whole(config)
    rows = rows_of(config)
    findings.episodes += len(rows)
    injected = stage.record(name).imports_injected()
    stopped = [row for row in rows if row.non_candidate_stop]
    for fault, row in zip_longest(injected, stopped[: len(injected)]):
        booked = SUCCESS if row is None else cell_of(row)
        task_id = "" if row is None else row.task_id
        entry = Entry(plan.number, task_id, fault, cells.RESET, booked)
        findings.entries.append(entry)
    met = {row.task_id for row in stopped[: len(injected)]}
    book_controls(plan.number, [r for r in rows if r.task_id not in met], findings)
    expected = [cells.RESET] * len(injected)
    check_ledger(plan.number, expected, finished.report["candidates"][0], findings)


@dataclass(frozen=True, slots=True)
class _Blow:
    """One thing that stops or damages a whole run."""

    name: str
    cell: Cell
    strike: Callable[[], Awaitable[None]]
    heal: Callable[[], Awaitable[None]]


async def _broken_run(stage: Stage, plan: Round, findings: Findings) -> None:
    name = _name(plan)
    draw = random.Random(plan.seed)  # noqa: S311 - a plan, no secret
    endpoint = DrillEndpoint(stage.controls, {})
    async with connected(endpoint) as line:
        config = stage.config(
            name, line.base_url, max_stops=FEW_STOPS, import_timeout_s=IMPORT_TIMEOUT_S
        )
        blows = _stops(stage, name, endpoint, line, draw)
        draw.shuffle(blows)
        for blow in blows:
            await _strike(plan, blow, config, findings)
        await run_whole(config)
        rows = rows_of(config)
        findings.episodes += len(rows)
        book_controls(plan.number, rows, findings)
        folder = RunFolder(config.paths.output_dir)
        hashes = _hashes(folder)
        for logs in (tearing.LOGS[:1], tearing.LOGS[1:], tearing.LOGS):
            await _tear(plan, logs, config, hashes, draw, findings)
        for log in tearing.LOGS:
            await _damage(plan, log, config, draw, findings)
        await run_whole(config)
        if _hashes(folder) != hashes:
            findings.contradictions.append(
                f"round {plan.number}: the resumed run has other hashes"
            )


def _stops(
    stage: Stage, name: str, endpoint: DrillEndpoint, line: Line, draw: random.Random
) -> list[_Blow]:
    """Return what stops a run before it is finished, each with its remedy."""

    async def refuse_key() -> None:
        endpoint.refuses_key_from = endpoint.requests + draw.randrange(1, 20)

    async def accept_key() -> None:
        endpoint.refuses_key_from = None

    def spoil_import(action: str) -> Callable[[], Awaitable[None]]:
        async def spoil() -> None:
            log = stage.record_file(name)
            stage.pack.plan_faults(log, (), {1: action})

        return spoil

    async def rest() -> None:
        stage.pack.rest()

    blows = [
        _Blow("connections refused", cells.STOP_LIMIT, line.cut, line.open),
        _Blow("key refused", cells.KEY_REFUSED, refuse_key, accept_key),
    ]
    if stage.level != "process":
        return blows
    return [
        *blows,
        *(
            _Blow(f"import: {do}", cells.PACK_REFUSED, spoil_import(do), rest)
            for do in ("exit", "raise", "hang")
        ),
    ]


async def _strike(
    plan: Round, blow: _Blow, config: EvalConfig, findings: Findings
) -> None:
    await blow.strike()
    booked = await _how_it_ended(config)
    await blow.heal()
    findings.entries.append(Entry(plan.number, "", blow.name, blow.cell, booked))


async def _how_it_ended(config: EvalConfig) -> Cell:
    try:
        await run_whole(config)
    except FairtrialError as error:
        return Cell("run", error.code, CAUSES[error.code].owner.value)
    return _WENT_ON


async def _tear(
    plan: Round,
    logs: Sequence[str],
    config: EvalConfig,
    hashes: object,
    draw: random.Random,
    findings: Findings,
) -> None:
    folder = RunFolder(config.paths.output_dir)
    paths = [folder.file(log) for log in logs]
    before = sum(map(tearing.torn_tails, paths))
    tearing.unfinish(folder)
    whole = {path: path.read_bytes() for path in paths}
    for path in paths:
        tearing.tear(path, draw)
    booked = await _how_it_ended(config)
    problem = ""
    if booked != _WENT_ON:
        # The next blow needs a whole run again, whatever became of this one.
        for path, content in whole.items():
            path.write_bytes(content)
        await run_whole(config)
    if booked == _WENT_ON:
        booked = cells.RESUMED
        if _hashes(folder) != hashes:
            problem = "the resumed run has other hashes"
        elif sum(map(tearing.torn_tails, paths)) != before + len(paths):
            problem = "the torn tail was not kept"
    name = f"torn: {' and '.join(path.name for path in paths)}"
    findings.entries.append(
        Entry(plan.number, "", name, cells.RESUMED, booked, problem)
    )


async def _damage(
    plan: Round, log: str, config: EvalConfig, draw: random.Random, findings: Findings
) -> None:
    folder = RunFolder(config.paths.output_dir)
    path: Path = folder.file(log)
    if folder.manifest.exists():
        tearing.unfinish(folder)
    place, old = tearing.damage(path, draw)
    booked = await _how_it_ended(config)
    tearing.write_byte(path, place, old)
    expected = {
        "candidate_io_cache": cells.CANDIDATE_LOG,
        "tool_trace_cache": cells.EPISODE_LOG,
    }
    name = f"damaged: {path.name}"
    findings.entries.append(Entry(plan.number, "", name, expected[log], booked))


def _hashes(folder: RunFolder) -> object:
    return read_json_artifact(folder.manifest).get("candidate_aggregates")
