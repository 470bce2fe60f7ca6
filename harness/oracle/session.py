"""One pack session in one worker, used once and then ended with its whole tree.

Every exchange waits until its own deadline or the episode's, whichever is nearer.
A fault, a cancellation or `close` ends the session: all processes that the worker
started are killed, its folder is given up, and nothing can be asked of it again.

What is certain to be asked can be sent ahead (`foresee_call`, `foresee_end`): the
worker then answers one request after the other until the first fault, and each is
still an exchange of its own with its own deadline. A call that waits for a hash is
made only while the hash's deadline is `GO_AHEAD_MARGIN_S` away, on the clock that
evaluator and worker share; else the worker says that it stopped, and is asked again.
So a hash that comes late still means that its call never started.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import anyio

from harness.canonical import Json, canonical_bytes, is_content_hash
from harness.oracle.channel import Channel, ChannelEndedError, OversizeError
from harness.oracle.contracts import (
    AssertionReply,
    AssertionStatus,
    IsolationLevel,
    Operation,
    OracleFault,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.exchanges import (
    CLOSE,
    STATE_HASH,
    assertion_request,
    call_request,
    no_object,
    value_of,
)
from harness.oracle.observed import differences, observe
from harness.oracle.worker_folders import LentFolder
from oracle_workers.frames import STOPPED
from oracle_workers.processes import DoomedTree

GO_AHEAD_MARGIN_S: Final = 0.25
"""Longer than an answer that was sent takes to be seen here."""
_KILL_PATIENCE_S = 2.0
_MOST_AHEAD_BYTES: Final = 1 << 20
_VERDICTS: dict[str, AssertionStatus] = {
    "passed": "passed",
    "failed": "failed",
    "not_applicable": "not_applicable",
    "infrastructure_error": "infrastructure_error",
}


class HostView(Protocol):
    """What a session needs to know of its host."""

    applied: dict[str, Json]

    def is_serving(self, number: int) -> bool:
        """Tell whether the pack host that a session was opened with still runs."""

    async def exit_status_of(self, number: int) -> int | None:
        """Return how a worker ended, if the host said so."""


class OracleSession:
    """The client side of one worker; made by `OracleHost.open_session`."""

    def __init__(
        self,
        host: HostView,
        number: int,
        channel: Channel,
        folder: LentFolder,
        deadlines: WorkerDeadlines,
        deadline: float,
        forget: Callable[[OracleSession], None],
    ) -> None:
        self._host = host
        self._number = number
        self.channel = channel
        self._folder = folder
        self._deadlines = deadlines
        self.deadline = deadline
        """The episode's, on anyio's clock."""
        self._forget = forget
        self._ended: dict[str, Json] | None = None
        self._seen: dict[str, Json] = {}
        self._ahead: deque[dict[str, Json]] = deque()
        """Requests that were sent and not waited for yet, in order."""
        self.parting_s = 0.0
        """How long the worker may take to end by itself, however the session ends."""

    async def reset(self, fixtures: dict[str, Json] | None = None) -> None:
        """Start the episode, on own or given fixtures; raises OracleFault."""
        request: dict[str, Json] = {"op": "reset"}
        if fixtures is not None:
            request["fixtures"] = fixtures
        await self.exchange("reset", request)

    async def call_tool(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> dict[str, Json]:
        """Run one tool call; raises OracleFault, `malformed` for a non-object.

        A non-object that came whole does not end the session: the state after the
        call can still be read, so its commit need not stay unknown.
        """
        value = await self.exchange("call", call_request(name, arguments, turn_index))
        if isinstance(value, dict):
            return value
        raise no_object("call", value)

    async def state_hash(self) -> str:
        """Return the content hash of the backend's state; raises OracleFault."""
        value = await self.exchange("state", STATE_HASH)
        if isinstance(value, str) and is_content_hash(value):
            return value
        raise await self._fail(
            OracleFault("state", "malformed", "the answer is not a content hash")
        )

    async def state(self) -> dict[str, Json]:
        """Return the backend's state; raises OracleFault."""
        value = await self.exchange("state", {"op": "state"})
        return await self._object("state", value)

    async def run_assertion(self, name: str, task: dict[str, Json]) -> AssertionReply:
        """Run one assertion; raises OracleFault when the worker broke on it."""
        return await self.judge({"name": name, "task": task})

    async def judge(self, request: dict[str, Json]) -> AssertionReply:
        """Run one assertion on a request that may bring state and trace along."""
        value = await self.exchange("assertion", assertion_request(request))
        if isinstance(value, dict) and value.get("status") in _VERDICTS:
            return AssertionReply(
                _VERDICTS[value["status"]],
                str(value.get("reason_code")),
                str(value.get("detail")),
            )
        raise await self._fail(
            OracleFault("assertion", "malformed", "the answer is not a verdict")
        )

    def foresee_call(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> None:
        """Send ahead a state hash, a call that needs it first, and a state hash."""
        hash_ends = min(anyio.current_time() + self._deadlines.state_s, self.deadline)
        self._send_ahead(
            [STATE_HASH, call_request(name, arguments, turn_index), STATE_HASH],
            hash_ends - GO_AHEAD_MARGIN_S,
        )

    def foresee_end(self, assertions: Sequence[str], task: dict[str, Json]) -> None:
        """Send ahead a state hash, the assertions and the close."""
        judged = [
            assertion_request({"name": name, "task": task}) for name in assertions
        ]
        self._send_ahead([STATE_HASH, *judged, CLOSE], self.deadline)

    def _send_ahead(self, requests: list[dict[str, Json]], until: float) -> None:
        """Send requests of which the second may begin before `until` only."""
        if self._ended is not None or anyio.current_time() >= until:
            return
        request = canonical_bytes({"each": requests, "until": until})
        if len(request) <= _MOST_AHEAD_BYTES:
            self._ahead.extend(requests)
            self.channel.post(request)

    async def list_tools(self) -> Json:
        """Return what the backend names as its tools; raises OracleFault."""
        return await self.exchange("call", {"op": "list_tools"})

    async def assertion_names(self) -> Json:
        """Return the names of the pack's assertions; raises OracleFault."""
        return await self.exchange("assertion", {"op": "assertion_names"})

    async def close(self) -> None:
        """End the session and every process of it; safe after a fault, and twice.

        Raises OracleFault when the worker does not confirm; it is ended all the same.
        """
        if self._ended is not None:
            return
        if anyio.current_time() >= self.deadline:
            await self._end("closed at the episode's deadline", None)
            return
        if self._ahead and self._ahead[0] is not CLOSE:
            # It works on what nobody wants to know any more.
            await self._end("closed", None)
            return
        try:
            await self.exchange("close", CLOSE)
        finally:
            await self._end("closed", None)

    def evidence(self) -> dict[str, Json]:
        """Return captured output, containment and how the session ended."""
        output = self.channel.output
        return {
            "output": output.text,
            "output_bytes": output.total_bytes,
            "output_truncated": output.truncated,
            "containment": self._host.applied,
            "observed": self._seen,
            "ended": self._ended,
        }

    async def abort(self, how: str) -> None:
        """End the session at once, without asking the worker."""
        await self._end(how, None)

    async def born(self) -> None:
        """Wait until the worker runs contained; raises OracleFault."""
        await self._guarded("import", None)

    async def check_containment(
        self, level: IsolationLevel, limits: WorkerLimits
    ) -> None:
        """Look at the newborn worker from outside; raises OracleFault if it is loose.

        What was seen becomes part of the evidence.
        """
        self._seen = observe(self.pid)
        loose = differences(self._seen, level, limits)
        if loose:
            detail = f"the worker is not contained as stated: {', '.join(loose)}"
            raise await self._fail(OracleFault("import", "session", detail))

    async def import_pack(self) -> None:
        """Have the worker import the pack itself; raises OracleFault."""
        await self.exchange("import", {"op": "import"})

    @property
    def is_over(self) -> bool:
        """Tell whether the session has ended, for whatever reason."""
        return self._ended is not None

    @property
    def folder(self) -> Path:
        """The one folder that the worker may write."""
        return self._folder.path

    @property
    def pid(self) -> int:
        """The worker's process id in this process's namespace."""
        return self.channel.pid

    async def exchange(self, operation: Operation, request: dict[str, Json]) -> Json:
        """Send one request to the worker and return its value; raises OracleFault."""
        is_sent = bool(self._ahead) and self._ahead[0] == request
        if self._ended is not None:
            raise OracleFault(
                operation,
                "session",
                f"the session has ended: {self._ended['how']}",
                sent=is_sent,
            )
        if not self._ahead:
            return await self._guarded(operation, canonical_bytes(request))
        if not is_sent:
            raise AssertionError("something else was sent ahead")
        self._ahead.popleft()
        return await self._guarded(operation, None)

    async def _guarded(self, operation: Operation, request: bytes | None) -> Json:
        """Exchange under the deadline; whatever goes wrong ends the session.

        None as the request: it was sent, and only its answer is waited for.
        """
        try:
            payload = await self._timed(operation, request)
            if payload.startswith(STOPPED):
                self._ahead.clear()
                payload = b"{" + payload[len(STOPPED) :]
            return value_of(operation, payload)
        except OracleFault as fault:
            raise await self._fail(fault) from None
        except BaseException:
            # Cancelled in the middle: the reply would answer the next request.
            await self._end("abandoned", None)
            raise

    async def _timed(self, operation: Operation, request: bytes | None) -> bytes:
        now = anyio.current_time()
        if now >= self.deadline:
            raise OracleFault(
                operation,
                "timeout",
                "the episode's time was over"
                + ("" if request is None else "; nothing was sent"),
                sent=request is None,
            )
        if request is None and (answer := self.channel.read_already()) is not None:
            return answer
        own = now + self._deadlines.of(operation)
        nearer = "operation" if own <= self.deadline else "episode"
        with anyio.CancelScope(deadline=min(own, self.deadline)) as scope:
            try:
                if request is None:
                    return await self.channel.receive()
                return await self.channel.exchange(request)
            except ChannelEndedError:
                raise await self._crash(operation) from None
            except OversizeError as error:
                raise OracleFault(operation, "malformed", str(error)) from None
        assert scope.cancelled_caught  # noqa: S101 - the only way to get here
        if self._ahead and self._ahead[0]["op"] == "call_tool":
            late = self.channel.seen_late()
            if late is not None:
                # It was sent long before its deadline, and the call has begun.
                return late
        raise OracleFault(
            operation, "timeout", f"no answer at the deadline of the {nearer}"
        )

    async def _crash(self, operation: Operation) -> OracleFault:
        if not self._host.is_serving(self._number):
            gone = "the pack host is gone"
            return OracleFault(operation, "session", gone, killed=True)
        status = await self._host.exit_status_of(self._number)
        how = "the worker ended or closed its protocol"
        if status is not None:
            how += f" (exit {status})" if status >= 0 else f" (signal {-status})"
        killed = status == -signal.SIGKILL
        return OracleFault(operation, "crashed", how, killed=killed)

    async def _object(self, operation: Operation, value: Json) -> dict[str, Json]:
        if isinstance(value, dict):
            return value
        raise await self._fail(no_object(operation, value))

    async def _fail(self, fault: OracleFault) -> OracleFault:
        await self._end("fault", fault)
        return fault

    async def _end(self, how: str, fault: OracleFault | None) -> None:
        if self._ended is not None:
            return
        self._ended = {"how": how} if fault is None else {**fault.as_json(), "how": how}
        with anyio.CancelScope(shield=True):
            await self._part()
            killed, all_gone = await self._kill_tree()
            self._ended["processes_killed"] = killed
            self.channel.close()
            is_clean = how == "closed" and killed == 0 and all_gone
            await self._folder.give_back(may_be_lent=is_clean)
        self._forget(self)

    async def _part(self) -> None:
        handle = self.channel.handle
        if handle is None or not self.parting_s:
            return
        self.channel.finish_sending()
        with anyio.move_on_after(self.parting_s):
            await anyio.wait_readable(handle)

    async def _kill_tree(self) -> tuple[int, bool]:
        """Kill the worker and all below it.

        Returns how many were below, and whether all of them are known to be gone.
        """
        handle = self.channel.handle
        if handle is None:
            return 0, False
        below = 0
        with anyio.move_on_after(_KILL_PATIENCE_S) as patience:
            tree = DoomedTree(self.channel.pid, handle)
            while handles := tree.strike():
                below += len(handles)
                await _wait_and_close(handles)
            tree.finish()
            await anyio.wait_readable(handle)
        return below, not patience.cancelled_caught


async def _wait_and_close(handles: list[int]) -> None:
    try:
        for handle in handles:
            await anyio.wait_readable(handle)
    finally:
        for handle in handles:
            os.close(handle)
