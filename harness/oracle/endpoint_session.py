"""One session with an endpoint: a client worker, and a worker for the assertions.

The client worker holds the connection and the credential and runs no pack code; the
assertions get state and trace from here and run in a worker that has neither. A
remote session that was created is deleted on every way out: by the client worker
when the session is closed, by a second short-lived one when the first is dead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

import anyio

from harness.canonical import Json, canonical_bytes
from harness.errors import OracleError
from harness.oracle.contracts import (
    AssertionReply,
    Operation,
    OracleFault,
    SessionContext,
)
from harness.oracle.session import OracleSession
from oracle_workers.frames import MAX_REQUEST_BYTES

Answer = TypeVar("Answer")
_ENVELOPE_BYTES: Final = 1 << 10
_SECOND_START_S: Final = 5.0
"""How long the start of a second client may take, should its host have died."""


class EndpointView(Protocol):
    """What a session needs of its host."""

    applied: dict[str, Json]

    @property
    def max_request_bytes(self) -> int:
        """The endpoint's cap on a request's body."""

    @property
    def close_s(self) -> float:
        """How long a deletion may take, in seconds."""

    async def open_client(
        self, context: SessionContext, *, deadline: float
    ) -> OracleSession:
        """Start a client worker and hand it the credential."""

    async def open_judge(
        self, context: SessionContext, *, deadline: float
    ) -> OracleSession:
        """Start a worker for the assertions."""

    def compare(self, identity: Json, when: str) -> None:
        """Raise OracleError for another identity than the certified one."""


class EndpointSession:
    """The client side of one endpoint session; made by `EndpointHost`."""

    def __init__(
        self,
        host: EndpointView,
        client: OracleSession,
        context: SessionContext,
        deadline: float,
        forget: Callable[[EndpointSession], None],
    ) -> None:
        self._host = host
        self._client = client
        self._context = context
        self._deadline = deadline
        self._forget = forget
        self._judge: OracleSession | None = None
        self._trace: list[Json] = []
        self._remote_id: str | None = None
        """Set while a session is known to exist at the endpoint."""
        self._remote = "never created"
        self._ended: str | None = None

    async def reset(self) -> None:
        """Create the remote session, which is the reset; raises OracleFault.

        Raises OracleError when the endpoint is not the certified oracle.
        """
        if self._ended is None:
            self._trace.clear()
            self._remote = "unknown: its creation was not answered"
        # A worker that waits for the id may go on a little, for without the id
        # nobody could delete the session; it does so itself when the id comes.
        self._client.parting_s = self._host.close_s
        created = await self._kept(self._client.exchange("reset", {"op": "reset"}))
        self._client.parting_s = 0.0
        self._remote_id, self._remote = created["session_id"], "open"
        self._host.compare(created["identity"], "at the creation of a session")

    async def call_tool(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> dict[str, Json]:
        """Run one tool call; raises OracleFault, `malformed` for a non-object."""
        call = {"name": name, "arguments": arguments, "turn_index": turn_index}
        await self._hold_cap("call", call, self._host.max_request_bytes)
        try:
            result = await self._kept(
                self._client.call_tool(name, arguments, turn_index=turn_index)
            )
        except OracleFault as fault:
            if self._ended is None:
                # A whole non-object: the session goes on, and the call has happened.
                self._note(call, fault.value)
            raise
        self._note(call, result)
        return result

    async def state_hash(self) -> str:
        """Return the content hash of the backend's state; raises OracleFault."""
        return await self._kept(self._client.state_hash())

    async def state(self) -> dict[str, Json]:
        """Return the backend's state; raises OracleFault."""
        return await self._kept(self._client.state())

    async def run_assertion(self, name: str, task: dict[str, Json]) -> AssertionReply:
        """Read the state and run one assertion on it; raises OracleFault."""
        request = {
            "name": name,
            "task": task,
            "state": await self.state(),
            "trace": self._trace,
        }
        await self._hold_cap("assertion", request, MAX_REQUEST_BYTES - _ENVELOPE_BYTES)
        return await (await self._judges()).judge(request)

    def foresee_call(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> None:
        """Do nothing: an endpoint is asked one thing after the other."""

    def foresee_end(self, assertions: Sequence[str], task: dict[str, Json]) -> None:
        """Do nothing: an endpoint is asked one thing after the other."""

    async def list_tools(self) -> Json:
        """Return what the endpoint names as its tools; raises OracleFault."""
        return await self._kept(self._client.list_tools())

    async def assertion_names(self) -> Json:
        """Return the names of the pack's assertions; raises OracleFault."""
        return await (await self._judges()).assertion_names()

    async def close(self) -> None:
        """Delete the remote session and end both workers; safe to repeat.

        Raises OracleFault when the endpoint does not confirm the deletion.
        """
        if self._ended is not None:
            return
        if anyio.current_time() >= self._deadline:
            await self.abort("closed at the episode's deadline")
            return
        try:
            await self._client.close()
        except OracleFault as fault:
            if fault.kind in ("error", "malformed") and fault.sent:
                # The endpoint was asked, and nothing is asked twice.
                self._settled(f"not deleted: {fault}")
            raise
        else:
            self._settled("deleted")
        finally:
            await self.abort("closed")

    async def abort(self, how: str) -> None:
        """End both workers at once; a second client deletes what is still open."""
        if self._ended is not None:
            return
        self._ended = how
        with anyio.CancelScope(shield=True):
            for worker in (self._client, self._judge):
                if worker is not None:
                    await worker.abort(how)
            if self._remote_id is not None:
                await self._delete(self._remote_id)
        self._forget(self)

    def evidence(self) -> dict[str, Json]:
        """Return what both workers left behind, and what became of the session."""
        evidence = {
            **self._client.evidence(),
            "containment": self._host.applied,
            "remote_session": self._remote,
        }
        if self._judge is not None:
            judge = self._judge.evidence()
            evidence["assertions"] = {
                name: value for name, value in judge.items() if name != "containment"
            }
        return evidence

    async def _kept(self, exchange: Awaitable[Answer]) -> Answer:
        """Await an exchange; one that ends the client ends the whole session."""
        try:
            return await exchange
        except BaseException:
            if self._client.is_over:
                await self.abort("client ended")
            raise

    async def _hold_cap(
        self, operation: Operation, request: dict[str, Json], limit: int
    ) -> None:
        size = len(canonical_bytes(request))
        if size <= limit:
            return
        await self.abort("fault")
        raise OracleFault(
            operation,
            "error",
            f"the request has {size} bytes, at most {limit} are sent",
            sent=False,
        )

    def _note(self, call: dict[str, Json], result: Json) -> None:
        self._trace.append(
            {
                "tool": call["name"],
                "arguments": call["arguments"],
                "result": result,
                "turn_index": call["turn_index"],
            }
        )

    async def _judges(self) -> OracleSession:
        if self._judge is None:
            self._judge = await self._host.open_judge(
                self._context, deadline=self._deadline
            )
        return self._judge

    def _settled(self, remote: str) -> None:
        self._remote_id, self._remote = None, remote

    async def _delete(self, session_id: str) -> None:
        """Send DELETE from a worker of its own; bounded, and never raises a fault."""
        limit_s = self._host.close_s + _SECOND_START_S
        self._settled(f"not deleted: no answer in {limit_s} s")
        with anyio.move_on_after(limit_s):
            try:
                await self._ask_to_delete(session_id, anyio.current_time() + limit_s)
            except (OracleFault, OracleError) as error:
                self._settled(f"not deleted: {error}")
            else:
                self._settled("deleted by a second client")

    async def _ask_to_delete(self, session_id: str, deadline: float) -> None:
        second = await self._host.open_client(self._context, deadline=deadline)
        try:
            request = {"op": "delete", "session_id": session_id}
            await second.exchange("close", request)
        finally:
            await second.abort("deleted")
