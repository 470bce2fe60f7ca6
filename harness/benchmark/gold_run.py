"""Runs the gold side of a task once, in a worker, and keeps everything it showed.

A gold trace is evidence about the pack: the calls with their results and state
hashes, and the verdict of every assertion. Two traces of one task agree when
everything but words for people is equal.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import anyio

from harness.benchmark.oracle_access import GoldHost, GoldSession
from harness.benchmark.pack import Pack
from harness.benchmark.projection import ORACLE_CLOCK, project_task
from harness.benchmark.rows import GoldCall, build_row
from harness.benchmark.template_model import result_reference
from harness.benchmark.templates import PlannedCall, PlannedTask
from harness.canonical import Json, canonical_json
from harness.conversation.script import script_from_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SESSION_S: Final = 60.0
"""Longest life of one certification session."""
IN_FLIGHT: Final = 4
"""Sessions of certification that run at the same time."""
UNIDENTIFIED: Final = "sha256:" + "0" * 64
"""Stands for source and oracle while neither has an identity yet."""


@dataclass(frozen=True, slots=True)
class GoldVerdict:
    """One assertion on a gold run."""

    name: str
    status: str
    reason_code: str
    detail: str


@dataclass(frozen=True, slots=True)
class GoldTrace:
    """One gold run; `problem` is empty when it came to its end."""

    task_id: str
    calls: tuple[GoldCall, ...] = ()
    verdicts: tuple[GoldVerdict, ...] = ()
    stage: str = ""
    """Where it ended: `schema`, `replay` or empty."""
    problem: str = ""

    def agreement(self) -> str:
        """Return the canonical text of what two runs must agree on."""
        return canonical_json(
            {
                "task_id": self.task_id,
                "stage": self.stage,
                "calls": [
                    [c.name, c.arguments, c.result, c.state_before, c.state_after]
                    for c in self.calls
                ],
                "verdicts": [[v.name, v.status, v.reason_code] for v in self.verdicts],
            }
        )

    @property
    def assertions_hold(self) -> bool:
        """Tell whether every assertion passed or does not apply, and one passed."""
        statuses = {verdict.status for verdict in self.verdicts}
        return "passed" in statuses and statuses <= {"passed", "not_applicable"}


class GoldStopError(Exception):
    """The gold run cannot go on; `stage` says which promise is broken."""

    def __init__(self, stage: str, problem: str) -> None:
        self.stage = stage
        self.problem = problem
        super().__init__(problem)


@asynccontextmanager
async def open_gold_session(
    host: GoldHost, task_id: str, seed: int
) -> AsyncIterator[GoldSession]:
    """Open, reset and in the end close one session."""
    deadline = anyio.current_time() + SESSION_S
    session = await host.open_session(task_id, seed, ORACLE_CLOCK, deadline=deadline)
    try:
        await session.reset()
        yield session
    finally:
        await session.close()


async def run_gold(
    host: GoldHost, pack: Pack, planned: PlannedTask, fault_type: type[Exception]
) -> GoldTrace:
    """Run one task's gold calls and assertions in a fresh worker."""
    run = _GoldRun(pack, planned)
    try:
        async with open_gold_session(host, planned.task_id, planned.seed) as session:
            await run.walk(session)
            await run.judge(session)
    except GoldStopError as stop:
        return replace(run.trace(), stage=stop.stage, problem=stop.problem)
    except fault_type as fault:
        return replace(run.trace(), stage="replay", problem=str(fault))
    return run.trace()


class _GoldRun:
    def __init__(self, pack: Pack, planned: PlannedTask) -> None:
        self.pack = pack
        self.planned = planned
        self.calls: list[GoldCall] = []
        self.verdicts: list[GoldVerdict] = []
        self.results: dict[str, dict[str, Json]] = {}

    def trace(self) -> GoldTrace:
        return GoldTrace(self.planned.task_id, tuple(self.calls), tuple(self.verdicts))

    async def walk(self, session: GoldSession) -> None:
        state = await session.state_hash()
        for turn in self.planned.turns:
            for position, call in enumerate(turn.calls):
                arguments = self.arguments(call)
                result = await session.call_tool(
                    call.name, arguments, turn_index=turn.turn_index
                )
                after = await session.state_hash()
                if call.milestone_id is not None:
                    self.results[call.milestone_id] = result
                self.calls.append(
                    GoldCall(
                        turn.turn_index,
                        turn.call_group or 0,
                        position,
                        call.name,
                        arguments,
                        result,
                        state,
                        after,
                    )
                )
                state = after

    def arguments(self, call: PlannedCall) -> dict[str, Json]:
        arguments: dict[str, Json] = self.resolved(call.arguments)
        failures = self.pack.tools.catalog.failures(call.name, arguments)
        if failures:
            raise GoldStopError(
                "schema",
                f"gold arguments of {call.name} break its schema: "
                + canonical_json(list(failures)),
            )
        return arguments

    def resolved(self, value: Json) -> Json:
        reference = result_reference(value)
        if reference is not None:
            return self.taken(reference.call, reference.path)
        if isinstance(value, dict):
            return {key: self.resolved(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolved(item) for item in value]
        return value

    def taken(self, call: str, path: tuple[str, ...]) -> Json:
        value: Json = self.results[call]
        for part in path:
            if isinstance(value, dict) and part in value:
                value = value[part]
            elif (
                isinstance(value, list) and part.isdecimal() and int(part) < len(value)
            ):
                value = value[int(part)]
            else:
                raise GoldStopError(
                    "replay", f"the result of {call} has nothing at {'.'.join(path)}"
                )
        if isinstance(value, dict | list):
            raise GoldStopError(
                "replay", f"{'.'.join(path)} of {call}'s result is no scalar"
            )
        return value

    async def judge(self, session: GoldSession) -> None:
        row = build_row(self.pack, self.planned, tuple(self.calls))
        script = script_from_row(row, UNIDENTIFIED)
        part = project_task(self.pack, row, script, UNIDENTIFIED)
        for name in row["success_assertions"]:
            verdict = await session.run_assertion(name, part.assertion_task)
            self.verdicts.append(
                GoldVerdict(name, verdict.status, verdict.reason_code, verdict.detail)
            )
