"""Looking at a pack from outside: a throwaway host, and what the pack says it is."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from harness.canonical import Json
from harness.oracle.contracts import (
    IsolationLevel,
    OracleFault,
    PackCode,
    PackHost,
    SessionContext,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.host import OracleHost

_CLOCK = "2000-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a pack offers, or why it could not be asked."""

    importable: bool
    detail: str
    """Empty, or the fault's words."""
    tools: tuple[str, ...]
    """What `list_tools` returned, in its order."""
    assertions: tuple[str, ...]
    """Names of the callable assertions, sorted."""
    applied: dict[str, Json]
    """The containment it ran under."""


async def probe(
    pack: PackCode,
    *,
    level: IsolationLevel = "process",
    deadlines: WorkerDeadlines | None = None,
    limits: WorkerLimits | None = None,
) -> ProbeReport:
    """Import a pack in a throwaway worker and list its tools and assertions.

    A pack that cannot be imported or asked is a report, not an exception. Raises
    OracleError when the level cannot be had.
    """
    timing = deadlines or WorkerDeadlines()
    host = OracleHost(
        pack, level=level, mode="per_task", deadlines=timing, limits=limits
    )
    async with host:
        return await ask(host, timing)


async def ask(host: PackHost, timing: WorkerDeadlines) -> ProbeReport:
    """List tools and assertions of a host's pack, asked in a worker of its own."""
    end = anyio.current_time() + timing.import_s + timing.call_s * 2
    try:
        session = await host.open_session(
            SessionContext("probe", 0, _CLOCK), deadline=end
        )
        tools = _names("list_tools()", await session.list_tools())
        assertions = _names("the assertions", await session.assertion_names())
        await session.close()
    except OracleFault as fault:
        return unusable(fault, host.applied)
    return ProbeReport(True, "", tools, assertions, host.applied)


def unusable(fault: OracleFault, applied: dict[str, Json]) -> ProbeReport:
    """Return the report of a pack that could not be imported or asked."""
    return ProbeReport(False, str(fault), (), (), applied)


def _names(source: str, value: Json) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise OracleFault("import", "malformed", f"{source} is not a list of names")
