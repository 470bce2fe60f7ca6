"""Pack hosts for certification: the protocols of `harness.benchmark.oracle_access`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from harness.benchmark.oracle_access import GoldHost, GoldSession, HostMode
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
from harness.oracle.opening import open_host


class CertifyingOracle:
    """Starts a pack host for each part of a certification, under stated limits."""

    fault_type = OracleFault

    def __init__(
        self,
        level: IsolationLevel = "process",
        deadlines: WorkerDeadlines | None = None,
        limits: WorkerLimits | None = None,
    ) -> None:
        self.level = level
        self.deadlines = deadlines or WorkerDeadlines()
        self.limits = limits or WorkerLimits()

    @asynccontextmanager
    async def host(
        self, code: PackCode, *, mode: HostMode, call_timeout_s: float | None = None
    ) -> AsyncIterator[GoldHost]:
        """Start one host; `call_timeout_s` replaces the deadline of a call."""
        deadlines = self.deadlines
        if call_timeout_s is not None:
            deadlines = replace(deadlines, call_s=call_timeout_s)
        async with open_host(
            code, level=self.level, mode=mode, deadlines=deadlines, limits=self.limits
        ) as host:
            yield _Host(host)


class _Host:
    def __init__(self, host: PackHost) -> None:
        self._host = host

    @property
    def applied(self) -> dict[str, Json]:
        return self._host.applied

    async def open_session(
        self, task_id: str, seed: int, clock: str, *, deadline: float
    ) -> GoldSession:
        return await self._host.open_session(
            SessionContext(task_id, seed, clock), deadline=deadline
        )
