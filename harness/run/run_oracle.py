"""The pack host of one run: started to answer the gates, kept for the episodes.

The gates ask a local pack what it offers, contained as the run will be; the host that
answers serves the run. What they have nothing to ask, an endpoint, is opened after
them.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import AsyncExitStack

import anyio
import anyio.from_thread

from harness.benchmark.pack import Pack
from harness.benchmark.pack_code import PackCode
from harness.config import EvalConfig
from harness.errors import OracleError
from harness.oracle.contracts import IsolationLevel, OracleFault, PackHost
from harness.oracle.opening import open_host
from harness.oracle.probe import ProbeReport, ask, unusable
from harness.run.authorize import worker_deadlines, worker_limits


class RunOracle:
    """Opens the host of a run's pack once."""

    def __init__(self, config: EvalConfig, stack: AsyncExitStack) -> None:
        """Open later; `stack` closes what was opened."""
        self._config = config
        self._stack = stack
        self._host: PackHost | None = None
        self._asked = anyio.Event()
        self._pack: PackCode | None = None
        """What the gates ask about."""
        self._answer: Future[ProbeReport] = Future()

    def probe(self, pack: PackCode, *, level: IsolationLevel) -> ProbeReport:
        """Have the loop start the host and ask it; called from a thread of the loop.

        `level` is the config's. A pack that cannot be imported or asked is a report,
        not an exception. Raises OracleError when the level cannot be had, and
        CancelledError when nobody will answer any more.
        """
        if level != self._config.isolation.level:
            raise AssertionError("a run has one level")
        self._pack = pack
        anyio.from_thread.run_sync(self._asked.set)
        return self._answer.result()

    async def answer(self) -> None:
        """Answer the gates; to be cancelled when they are passed."""
        try:
            await self._asked.wait()
            self._answer.set_result(await self._ask())
        except OracleError as error:
            self._answer.set_exception(error)
        finally:
            # Without effect on an answer; without one, the thread must not wait.
            self._answer.cancel()

    async def _ask(self) -> ProbeReport:
        if self._pack is None:
            raise AssertionError("nobody asked")
        try:
            host = await self._started(self._pack)
        except OracleFault as fault:
            return unusable(fault, {})
        return await ask(host, worker_deadlines(self._config))

    async def host(self, pack: Pack) -> PackHost:
        """Return the running host; raise OracleError where there can be none."""
        if self._host is not None:
            return self._host
        try:
            return await self._started(pack.code())
        except OracleFault as fault:
            raise _no_oracle(pack, fault) from None

    async def _started(self, pack: PackCode) -> PackHost:
        host = open_host(
            pack,
            level=self._config.isolation.level,
            mode=self._config.isolation.host,
            deadlines=worker_deadlines(self._config),
            limits=worker_limits(self._config),
        )
        self._host = await self._stack.enter_async_context(host)
        return self._host


async def confirm(host: PackHost, pack: Pack) -> None:
    """Have the oracle say once more who it is; raise OracleError for another one."""
    try:
        await host.confirm_identity()
    except OracleFault as fault:
        raise _no_oracle(pack, fault) from None


def _no_oracle(pack: Pack, fault: OracleFault) -> OracleError:
    """Return the refusal of a pack whose oracle cannot be used."""
    return OracleError(
        "eval_oracle_session_failed",
        "the pack's oracle cannot be used",
        where=f"pack {pack.pack_id} {pack.version}",
        expected="a pack that imports within limits.import_timeout_s, and an "
        "endpoint, if it has one, that answers within limits.tool_timeout_s",
        actual=str(fault),
        recovery="`fairtrial pack check` shows what is wrong with the pack",
    )
