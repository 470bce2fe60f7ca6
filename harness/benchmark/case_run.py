"""Runs validation cases and confirmation probes and compares what they show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from harness.benchmark.gold_run import open_gold_session
from harness.benchmark.oracle_access import GoldHost, GoldSession
from harness.benchmark.pack import Pack
from harness.benchmark.problems import shown
from harness.benchmark.validation_cases import ValidationCase
from harness.canonical import Json, canonical_json, json_equal

_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What one probe showed."""

    case: ValidationCase
    result: dict[str, Json] | None
    """None where the worker failed; `fault` says how."""
    state_before: str
    state_after: str
    fault: str = ""

    def agreement(self) -> str:
        """Return the canonical text of what a repetition must agree on."""
        return canonical_json(
            [self.case.case_id, self.result, self.state_before, self.state_after]
        )


async def run_cases(
    host: GoldHost, pack: Pack, fault_type: type[Exception]
) -> list[CaseOutcome]:
    """Run all cases in order; a chained case goes on in its predecessor's worker."""
    outcomes: list[CaseOutcome] = []
    async for chain in _chains(pack.cases):
        outcomes += await _run_chain(host, chain, fault_type)
    return outcomes


async def _chains(
    cases: tuple[ValidationCase, ...],
) -> AsyncIterator[list[ValidationCase]]:
    chain: list[ValidationCase] = []
    for case in cases:
        if case.reset_before and chain:
            yield chain
            chain = []
        chain.append(case)
    if chain:
        yield chain


async def _run_chain(
    host: GoldHost, chain: list[ValidationCase], fault_type: type[Exception]
) -> list[CaseOutcome]:
    outcomes: list[CaseOutcome] = []
    try:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                open_gold_session(host, f"case {chain[0].case_id}", _SEED)
            )
            for index, case in enumerate(chain):
                outcomes.append(await _run_case(session, case, index))
    except fault_type as fault:
        outcomes += [
            CaseOutcome(case, None, "", "", str(fault))
            for case in chain[len(outcomes) :]
        ]
    return outcomes


async def _run_case(
    session: GoldSession, case: ValidationCase, turn_index: int
) -> CaseOutcome:
    before = await session.state_hash()
    result = await session.call_tool(case.tool, case.arguments, turn_index=turn_index)
    return CaseOutcome(case, result, before, await session.state_hash())


def result_class(pack: Pack, result: dict[str, Json]) -> str:
    """Return `structured_error`, `awaiting_confirmation` or `success`."""
    if isinstance(result.get("error"), dict):
        return "structured_error"
    confirmation = pack.manifest.confirmation
    if result.get(confirmation.status_field) == confirmation.pending_status:
        return "awaiting_confirmation"
    return "success"


def error_code(result: dict[str, Json]) -> str | None:
    """Return the code of a business rejection, None if there is none that counts."""
    error = result.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and code else None


def unmet(pack: Pack, outcome: CaseOutcome) -> list[str]:
    """Return what a case expected and did not get."""
    case, result = outcome.case, outcome.result
    if result is None:
        return [outcome.fault]
    found: list[str] = []
    seen = result_class(pack, result)
    if case.result_class not in (None, seen):
        found.append(f"expected {case.result_class}, got {seen}: {shown(result)}")
    if case.error_code not in (None, error_code(result)):
        found.append(f"expected code {case.error_code}, got {error_code(result)}")
    unchanged = outcome.state_before == outcome.state_after
    if case.state_unchanged not in (None, unchanged):
        found.append(f"expected state_unchanged {case.state_unchanged}")
    for name, value in case.fields.items():
        if name not in result or not json_equal(result[name], value):
            found.append(
                f"expected {name} {shown(value)}, got {shown(result.get(name))}"
            )
    return found


def unconfirmed_probes(pack: Pack) -> list[ValidationCase]:
    """Return every successful probe of a confirmed tool with its confirmation off."""
    parameter = pack.manifest.confirmation.parameter
    probes = []
    for case in pack.cases:
        tool = pack.tools.by_name.get(case.tool)
        if tool is None or not tool.requires_confirmation or not case.reset_before:
            continue
        if case.result_class == "success":
            probes.append(
                ValidationCase(
                    case_id=f"{case.case_id} without confirmation",
                    tool=case.tool,
                    arguments={**case.arguments, parameter: False},
                    reset_before=True,
                    result_class="awaiting_confirmation",
                    error_code=None,
                    state_unchanged=True,
                    fields={},
                    negative=False,
                )
            )
    return probes


async def run_probes(
    host: GoldHost, probes: list[ValidationCase], fault_type: type[Exception]
) -> list[CaseOutcome]:
    """Run each probe in its own worker."""
    outcomes: list[CaseOutcome] = []
    for probe in probes:
        outcomes += await _run_chain(host, [probe], fault_type)
    return outcomes
