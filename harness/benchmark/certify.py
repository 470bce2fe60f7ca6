"""Certification: a pack's code keeps the promises of its data, shown by running it.

Every gold run is executed twice, in two hosts and in opposite orders, and a sample a
third time with a fresh import each; all must agree. Validation cases run twice too.
The oracle's client is passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import anyio

from harness.benchmark.case_run import (
    CaseOutcome,
    error_code,
    run_cases,
    run_probes,
    unconfirmed_probes,
    unmet,
)
from harness.benchmark.certification import Certification, Check, checks_of
from harness.benchmark.gold_run import (
    IN_FLIGHT,
    GoldTrace,
    open_gold_session,
    run_gold,
)
from harness.benchmark.never_returns import (
    hanging_endpoint_problem,
    hanging_tool_problem,
)
from harness.benchmark.oracle_access import GoldHost, GoldOracle, HostMode
from harness.benchmark.pack import Pack
from harness.benchmark.templates import PlannedTask
from harness.canonical import Json, content_hash
from harness.errors import OracleError, first_own

CANARY_TASKS: Final = 12
"""Gold runs that are repeated with a fresh import each."""
Failures = list[dict[str, Json]]
Progress = Callable[[str], None]


async def certify(
    pack: Pack,
    tasks: list[PlannedTask],
    oracle: GoldOracle,
    *,
    progress: Progress = lambda _: None,
) -> Certification:
    """Run every check and every gold task of a loaded pack."""
    return await _Certifier(pack, tasks, oracle, progress).run()


class _Certifier:
    def __init__(
        self,
        pack: Pack,
        tasks: list[PlannedTask],
        oracle: GoldOracle,
        progress: Progress,
    ) -> None:
        self.pack = pack
        self.oracle = oracle
        self.progress = progress
        self.rejected = {
            t.task_id: t.surface_problem for t in tasks if t.surface_problem
        }
        self.tasks = [task for task in tasks if not task.surface_problem]
        self.checks = {name: Check() for name in checks_of(pack)}
        self.outcomes: list[CaseOutcome] = []
        self.first: dict[str, GoldTrace] = {}
        self.second: dict[str, GoldTrace] = {}
        self.containment: dict[str, Json] = {}

    async def run(self) -> Certification:
        # The loader refuses a pack with bad names or empty sources, so these hold.
        self.checks["template_tool_names"].record([])
        self.checks["template_slot_sources"].record([])
        self.checks["representative_generation_contract"].record(self.empty_templates())
        try:
            await self.in_shared_host()
            await self.in_other_order()
        except self.oracle.fault_type as fault:
            if self.pack.endpoint is not None:
                raise _no_endpoint(self.pack.endpoint.base_url, str(fault)) from None
            self.checks["backend_schema_alignment"].record([{"problem": str(fault)}])
        else:
            self.judge_traces()
        await self.try_what_never_returns()
        return Certification(
            checks=self.checks,
            traces=self.first,
            stages=self.stages(),
            surface_rejections=self.rejected,
            stats=self.stats(),
            containment=self.containment,
        )

    async def in_shared_host(self) -> None:
        """Checks of the pack itself, and the first gold run of every task."""
        fault_type = self.oracle.fault_type
        self.progress("importing the pack and running its validation cases")
        async with self.oracle.host(self.pack.code(), mode="shared") as host:
            self.containment = host.applied
            level = host.applied.get("level")
            self.checks["I1"].record([] if level else [{"problem": "no worker level"}])
            self.judge_endpoint()
            await self.compare_names(host)
            self.outcomes = await run_cases(host, self.pack, fault_type)
            again = await run_cases(host, self.pack, fault_type)
            probes = await run_probes(host, unconfirmed_probes(self.pack), fault_type)
            self.judge_cases(again, probes)
            self.progress(f"running {len(self.tasks)} gold tasks")
            self.first = await self.run_tasks(host, self.tasks)

    def judge_endpoint(self) -> None:
        """Record what an endpoint's host has checked by starting at all."""
        endpoint = self.pack.endpoint
        if endpoint is None:
            return
        self.checks["endpoint_identity"].record([])
        problem = "endpoint_config.yaml declares no attestation"
        self.checks["endpoint_attestation"].record(
            [{"problem": problem}] if endpoint.attestation is None else []
        )

    async def try_what_never_returns(self) -> None:
        """Check T1 on the path that calls of this pack take."""
        if self.pack.endpoint is None:
            problem = await hanging_tool_problem(self.oracle)
        else:
            problem = await hanging_endpoint_problem(self.oracle)
        self.checks["T1"].record([{"problem": problem}] if problem else [])

    async def in_other_order(self) -> None:
        """The second gold run, backwards in a new host, and the canaries."""
        self.progress("running them again in the opposite order")
        self.second = await self.run_in("shared", list(reversed(self.tasks)))
        chosen = sorted(self.tasks, key=lambda task: content_hash(task.task_id))
        canaries = await self.run_in("per_task", chosen[:CANARY_TASKS])
        self.checks["state_bleed"].record(
            [
                _difference("differs when it runs alone", trace)
                for task_id, trace in canaries.items()
                if trace.agreement() != self.first[task_id].agreement()
            ]
        )

    async def run_in(
        self, mode: HostMode, tasks: list[PlannedTask]
    ) -> dict[str, GoldTrace]:
        async with self.oracle.host(self.pack.code(), mode=mode) as host:
            return await self.run_tasks(host, tasks)

    async def run_tasks(
        self, host: GoldHost, tasks: list[PlannedTask]
    ) -> dict[str, GoldTrace]:
        traces: dict[str, GoldTrace] = {}
        limiter = anyio.CapacityLimiter(IN_FLIGHT)

        async def run_one(task: PlannedTask) -> None:
            async with limiter:
                traces[task.task_id] = await run_gold(
                    host, self.pack, task, self.oracle.fault_type
                )

        try:
            async with anyio.create_task_group() as group:
                for task in tasks:
                    group.start_soon(run_one, task)
        except BaseExceptionGroup as failures:
            raise first_own(failures) from None
        return {task.task_id: traces[task.task_id] for task in tasks}

    async def compare_names(self, host: GoldHost) -> None:
        async with open_gold_session(host, "names", 0) as session:
            served = await session.list_tools()
            assertions = await session.assertion_names()
        declared = sorted(self.pack.tools.by_name)
        same = isinstance(served, list) and sorted(map(str, served)) == declared
        self.checks["backend_schema_alignment"].record(
            [] if same else [{"expected": declared, "actual": served}]
        )
        wanted = {n for t in self.pack.templates for n in t.success_assertions}
        missing = sorted(wanted - set(assertions))
        self.checks["assertions_importable"].record(
            [{"assertion": name, "problem": "not exported"} for name in missing]
        )

    def judge_cases(self, again: list[CaseOutcome], probes: list[CaseOutcome]) -> None:
        self.checks["declared_validation_cases"].record(
            _unmet(self.pack, self.outcomes)
        )
        self.checks["confirmation_policy"].record(_unmet(self.pack, probes))
        self.checks["D1"].record(
            [
                {"case": one.case.case_id, "problem": "a repetition differs"}
                for one, other in zip(self.outcomes, again, strict=True)
                if one.agreement() != other.agreement()
            ]
        )

    def judge_traces(self) -> None:
        """Checks that need every gold run."""
        self.checks["M1"].record([*self.false_mutations(), *self.false_templates()])
        self.checks["D2"].record(self.errors_without_code())
        self.checks["gold_replay"].record(
            [
                {"task_id": task_id, "stage": trace.stage, "problem": trace.problem}
                for task_id, trace in self.first.items()
                if trace.problem
            ]
            + [
                _difference("the second run differs", self.second[task_id])
                for task_id in self.first
                if not self.repeats(task_id)
            ]
        )
        self.checks["gold_assertions"].record(
            [
                {
                    "task_id": trace.task_id,
                    "verdicts": [[v.name, v.status, v.detail] for v in trace.verdicts],
                }
                for trace in self.first.values()
                if not trace.problem and not trace.assertions_hold
            ]
        )

    def repeats(self, task_id: str) -> bool:
        return self.first[task_id].agreement() == self.second[task_id].agreement()

    def empty_templates(self) -> Failures:
        kept = {task.template.template_id for task in self.tasks}
        return [
            {"template_id": t.template_id, "problem": "no task is left of it"}
            for t in self.pack.templates
            if t.template_id not in kept
        ]

    def false_mutations(self) -> Failures:
        """Compare `x-mutates` with what calls did to the state."""
        changed: set[str] = set()
        failures: Failures = []
        for where, tool, before, after in self.observed_calls():
            if before == after:
                continue
            changed.add(tool)
            if not self.pack.tools.by_name[tool].mutates:
                failures.append(
                    {
                        "tool": tool,
                        "where": where,
                        "problem": "a read-only tool changed state",
                    }
                )
        failures += [
            {"tool": tool.name, "problem": "x-mutates, but no call changed state"}
            for tool in self.pack.tools.by_name.values()
            if tool.mutates and tool.name not in changed
        ]
        return failures

    def observed_calls(self) -> Iterable[tuple[str, str, str, str]]:
        for outcome in self.outcomes:
            case = outcome.case
            yield case.case_id, case.tool, outcome.state_before, outcome.state_after
        for trace in self.first.values():
            for call in trace.calls:
                yield trace.task_id, call.name, call.state_before, call.state_after

    def false_templates(self) -> Failures:
        """Compare `mutates` of templates with what their tasks did."""
        changed: set[str] = set()
        for task in self.tasks:
            calls = self.first[task.task_id].calls
            if any(call.state_before != call.state_after for call in calls):
                changed.add(task.template.template_id)
        return [
            {
                "template_id": template.template_id,
                "problem": f"mutates: {str(template.mutates).lower()} does not hold",
            }
            for template in self.pack.templates
            if template.mutates not in (None, template.template_id in changed)
        ]

    def errors_without_code(self) -> Failures:
        results = [(o.case.case_id, o.result or {}) for o in self.outcomes]
        results += [(t.task_id, c.result) for t in self.first.values() for c in t.calls]
        return [
            {"where": where, "problem": "an error without a code"}
            for where, result in results
            if isinstance(result.get("error"), dict) and error_code(result) is None
        ]

    def stages(self) -> dict[str, tuple[str, ...]]:
        """Return which stages each task passed: schema, replay, assertions."""
        stages: dict[str, tuple[str, ...]] = {}
        for task_id, trace in self.first.items():
            passed: list[str] = []
            if trace.stage != "schema":
                passed.append("schema")
                if (
                    not trace.problem
                    and task_id in self.second
                    and self.repeats(task_id)
                ):
                    passed.append("replay")
                    if trace.assertions_hold:
                        passed.append("assertions")
            stages[task_id] = tuple(passed)
        return stages

    def stats(self) -> dict[str, Json]:
        return {
            "templates": len(self.pack.templates),
            "tools": len(self.pack.tools.by_name),
            "validation_cases": len(self.pack.cases),
            "tasks": len(self.tasks),
            "surface_rejections": len(self.rejected),
            "gold_calls": sum(len(t.calls) for t in self.first.values()),
            "tasks_by_turn_policy": dict(
                sorted(Counter(t.template.turn_policy for t in self.tasks).items())
            ),
        }


def _difference(problem: str, trace: GoldTrace) -> dict[str, Json]:
    """Return a failure that says how the other run ended, if it broke off."""
    failure: dict[str, Json] = {"task_id": trace.task_id, "problem": problem}
    if trace.problem:
        failure["ended"] = f"{trace.stage}: {trace.problem}"
    return failure


def _no_endpoint(base_url: str, fault: str) -> OracleError:
    return OracleError(
        "eval_oracle_session_failed",
        "the endpoint cannot be certified, for it did not answer as it must",
        where=base_url,
        expected="the oracle, reachable, with the certificate that the pack trusts",
        actual=fault,
        recovery="start the oracle, or correct endpoint_config.yaml",
    )


def _unmet(pack: Pack, outcomes: list[CaseOutcome]) -> Failures:
    return [
        {"case": outcome.case.case_id, "problem": problem}
        for outcome in outcomes
        for problem in unmet(pack, outcome)
    ]
