"""One pack host for one pack and run: started, watched, restarted in the open, ended.

`async with OracleHost(...)` starts it; `open_session` gives each task attempt a fresh
contained worker. A host that dies takes its sessions with it (fault kind `session`)
and is started again for the next one, unless it died a stated number of times in a
row; `starts` tells.
"""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from harness.canonical import Json, canonical_bytes
from harness.errors import OracleError
from harness.oracle import folders
from harness.oracle.channel import Channel
from harness.oracle.contracts import (
    HostMode,
    IsolationLevel,
    OracleFault,
    PackCode,
    SessionContext,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.keeper import Keeper, KeeperGoneError
from harness.oracle.residents import PackResident, Resident
from harness.oracle.session import OracleSession
from harness.oracle.worker_folders import WorkerFolders

MAX_DEATHS = 4
"""How often in a row a host may die, without a session that it served to its end."""
_START_PATIENCE_S = 30.0


class OracleHost:
    """The client side of a pack host; one per pack and run."""

    def __init__(
        self,
        pack: PackCode | Resident,
        *,
        level: IsolationLevel,
        mode: HostMode = "shared",
        deadlines: WorkerDeadlines | None = None,
        limits: WorkerLimits | None = None,
        scratch: Path | None = None,
    ) -> None:
        self._resident = _resident_of(pack) if isinstance(pack, PackCode) else pack
        self._level: IsolationLevel = level
        self._mode: HostMode = mode
        self._deadlines = deadlines or WorkerDeadlines()
        self._limits = limits or WorkerLimits()
        self._scratch_parent = scratch
        self._root: folders.Root | None = None
        self._folders: WorkerFolders | None = None
        """In the part of the root that the present start may write."""
        self._keeper: Keeper | None = None
        self._lock = anyio.Lock()
        self._next_number = 0
        self._first_number = 0
        """The first session of the present start; earlier ones have lost their host."""
        self._sessions: set[OracleSession] = set()
        self.applied: dict[str, Json] = {}
        """Containment as applied; limits that are not enforced say so."""
        self._deaths = 0
        """In a row, up to now."""
        self.starts = 0
        """How often the host was started; more than 1 means that it died."""

    async def __aenter__(self) -> Self:
        """Start the host.

        Raises OracleError `eval_isolation_unavailable` naming the missing piece, and
        OracleFault `import` when the pack cannot be imported.
        """
        self._root = folders.Root(self._scratch_parent)
        try:
            await self._start()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all sessions, the host and everything it started."""
        await self.aclose()

    async def aclose(self) -> None:
        """End all sessions, the host and everything it started; safe to repeat."""
        # An interrupt comes through the shield, once: what it meets is cut short, and
        # the rest is done all the same.
        with anyio.CancelScope(shield=True):
            try:
                for session in tuple(self._sessions):
                    await session.abort("host closed")
            finally:
                try:
                    await self._end_keeper()
                finally:
                    await self._remove_root()

    async def _end_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.end()

    async def _remove_root(self) -> None:
        root, self._root = self._root, None
        if root is not None:
            await root.remove()

    async def open_session(
        self, context: SessionContext, *, deadline: float
    ) -> OracleSession:
        """Start one contained worker; `deadline` is the episode's, on anyio's clock.

        Raises OracleFault of operation `import`.
        """
        keeper = await self._living_keeper()
        keeper.note_exits()
        number = self._next_number
        self._next_number += 1
        session = self._make_session(number, deadline)
        request = canonical_bytes(self._request(session, number, context))
        try:
            with session.channel.worker_ends() as descriptors:
                await keeper.ask(request, descriptors)
            await session.born()
            keeper.below.add(session.pid)
            await session.check_containment(self._level, self._limits)
        except OracleFault as fault:
            if fault.kind == "timeout" and anyio.current_time() < deadline:
                # A worker is born in milliseconds: the host does not answer its door.
                await keeper.end()
            raise
        except BaseException:
            await session.abort("abandoned")
            raise
        if self._mode == "per_task":
            await session.import_pack()
        return session

    async def confirm_identity(self) -> None:
        """Do nothing: a local pack is its files, and the source guard holds those."""

    @property
    def keeper_pid(self) -> int:
        """Process id of the host's keeper, 0 when there is none."""
        return 0 if self._keeper is None else self._keeper.pid

    def is_serving(self, number: int) -> bool:
        """Tell whether the host that a session was opened with still runs."""
        return (
            number >= self._first_number
            and self._keeper is not None
            and self._keeper.is_alive()
        )

    async def exit_status_of(self, number: int) -> int | None:
        """Return how a worker ended, negative for a signal, if the host said so."""
        if self._keeper is None:
            return None
        return await self._keeper.exit_status_of(number)

    def _make_session(self, number: int, deadline: float) -> OracleSession:
        assert self._folders is not None  # noqa: S101 - a living keeper implies it
        session = OracleSession(
            self,
            number,
            Channel(cap=self._limits.output_bytes),
            self._folders.lend(),
            self._deadlines,
            deadline,
            partial(self._over, number),
        )
        self._sessions.add(session)
        return session

    def _over(self, number: int, session: OracleSession) -> None:
        """Forget a session that has ended."""
        self._sessions.discard(session)
        if self.is_serving(number):
            self._deaths = 0

    def _request(
        self, session: OracleSession, number: int, context: SessionContext
    ) -> dict[str, Json]:
        return {
            "session": number,
            "folder": str(session.folder),
            "context": {
                "task_id": context.task_id,
                "seed": context.seed,
                "clock": context.clock,
                "timeout_s": context.timeout_s or self._deadlines.call_s,
            },
        }

    async def _living_keeper(self) -> Keeper:
        async with self._lock:
            if self._keeper is not None and self._keeper.is_alive():
                return self._keeper
            if self._root is None:
                raise OracleFault("import", "session", "the host is closed")
            if self._keeper is not None:
                await self._keeper.end()
            self._deaths += 1
            if self._deaths >= MAX_DEATHS:
                raise OracleFault(
                    "import",
                    "session",
                    f"the pack host died {MAX_DEATHS} times in a row",
                )
            return await self._start()

    async def _start(self) -> Keeper:
        assert self._root is not None  # noqa: S101 - both callers made sure
        self.starts += 1
        self._first_number = self._next_number
        leash, leash_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door, door_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with leash_end, door_end:
            self._keeper = Keeper(leash, door)
            self._keeper.spawn(leash_end, door_end)
        scratch = folders.make(self._root.path, f"host-{self.starts}")
        self._folders = WorkerFolders(scratch)
        self._keeper.configure(canonical_bytes(self._config(scratch)))
        await self._expect("contained", _START_PATIENCE_S)
        await self._expect("ready", self._deadlines.import_s)
        return self._keeper

    def _config(self, scratch: Path) -> dict[str, Json]:
        resident = self._resident
        return {
            "mode": self._mode,
            "folder": str(folders.make(scratch, "import")),
            "pack": resident.payload(self._deadlines),
            **resident.surroundings(self._deadlines),
            "containment": {
                "level": self._level,
                "limits": self._limits.as_json(),
                "scratch": str(scratch),
                "readable": resident.readable(),
                "relayed": resident.relayed,
            },
        }

    async def _expect(self, stage: str, patience_s: float) -> None:
        """Wait for the host to reach a stage of its start."""
        assert self._keeper is not None  # noqa: S101 - set by the caller
        try:
            with anyio.fail_after(patience_s):
                message = await self._keeper.message()
        except TimeoutError:
            await self._keeper.end()
            raise OracleFault(
                "import", "timeout", f"the pack host was not {stage} in {patience_s} s"
            ) from None
        except KeeperGoneError:
            raise OracleFault(
                "import", "crashed", f"the pack host ended before it was {stage}"
            ) from None
        if message["stage"] == "refused":
            raise OracleError(
                "eval_isolation_unavailable",
                f"{message['missing']} cannot be had: {message['detail']}",
                where="isolation.level",
                expected=f"a machine that offers level {self._level!r} whole",
                actual=str(message["missing"]),
                recovery="choose a lower level, or see `fairtrial doctor --sandbox`",
            )
        if message["stage"] == "broken":
            raise OracleFault("import", "error", str(message["detail"])[:4000])
        if message["stage"] == "contained":
            self.applied = {**message["applied"], "host_mode": self._mode}


def _resident_of(pack: PackCode) -> PackResident:
    """Return a local pack as a resident; raise OracleError for an endpoint's."""
    if pack.endpoint is None and pack.backend is not None:
        return PackResident(pack)
    raise OracleError(
        "eval_runner_mode_unsupported",
        "the pack's oracle is an HTTP endpoint",
        where=str(pack.endpoint),
        expected="a pack with a Python backend",
        recovery="open it with harness.oracle.opening.open_host, as a run does",
    )
