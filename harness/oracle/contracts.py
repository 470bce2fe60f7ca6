"""What the driver and the oracle client say to each other.

`OracleFault` is the only thing that a session raises for trouble on the pack's side.
It says what was being done and how it ended; what that means for the episode (an
unknown commit, say) is the driver's to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from harness.benchmark.pack_code import PackCode
from harness.canonical import Json

__all__ = [
    "AssertionReply",
    "AssertionStatus",
    "FaultKind",
    "HostMode",
    "IsolationLevel",
    "Operation",
    "OracleFault",
    "PackCode",
    "PackHost",
    "PackSession",
    "SessionContext",
    "WorkerDeadlines",
    "WorkerLimits",
]

Operation = Literal["import", "reset", "call", "state", "assertion", "close"]
FaultKind = Literal["timeout", "crashed", "malformed", "error", "session"]
"""`error`: pack code raised. `malformed`: its value is not what the contract asks
for. `crashed`: the worker ended. `timeout`: it was killed at a deadline. `session`:
the pack host is gone, or the session was used after its end."""
IsolationLevel = Literal["process", "confined", "namespaces"]
HostMode = Literal["shared", "per_task"]
AssertionStatus = Literal["passed", "failed", "not_applicable", "infrastructure_error"]


class OracleFault(Exception):  # noqa: N818 - a fault is the glossary's word
    """Something on the pack's side went wrong; the session is over."""

    def __init__(
        self,
        operation: Operation,
        kind: FaultKind,
        detail: str,
        *,
        value: Json = None,
        value_type: str | None = None,
        sent: bool = True,
        killed: bool = False,
    ) -> None:
        self.operation = operation
        self.kind = kind
        self.detail = detail
        self.value = value
        """For `malformed`: the JSON value as it came, None where it is no JSON."""
        self.value_type = value_type
        """Its type tag; the Python type's name where it has no JSON form."""
        self.sent = sent
        """False where the worker certainly never got the request."""
        self.killed = killed
        """Whether signal 9 from elsewhere ended the worker, or its host is gone."""
        super().__init__(f"{operation} {kind}: {detail}")

    def as_json(self) -> dict[str, Json]:
        """Return how a session ended by it, for its evidence."""
        return {
            "how": "fault",
            "operation": self.operation,
            "kind": self.kind,
            "detail": self.detail,
            "killed": self.killed,
        }


@dataclass(frozen=True, slots=True)
class WorkerDeadlines:
    """Longest wait for each operation, in seconds."""

    import_s: float = 10.0
    reset_s: float = 5.0
    call_s: float = 5.0
    state_s: float = 5.0
    assertion_s: float = 5.0
    close_s: float = 2.0

    def of(self, operation: Operation) -> float:
        """Return the deadline of one operation in seconds."""
        seconds: float = getattr(self, f"{operation}_s")
        return seconds


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one worker may use."""

    cpu_s: int = 30
    memory_bytes: int = 1 << 30
    open_files: int = 64
    processes: int = 16
    file_bytes: int = 16 << 20
    output_bytes: int = 10 << 20
    """Cap of one result or state as JSON."""

    def as_json(self) -> dict[str, int]:
        """Return the limits by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a pack learns about its task."""

    task_id: str
    seed: int
    clock: str
    """ISO-8601."""
    timeout_s: float | None = None
    """What it is told about the time of one call; None means the deadline."""


@dataclass(frozen=True, slots=True)
class AssertionReply:
    """The verdict of one assertion."""

    status: AssertionStatus
    reason_code: str
    """`assertion.` and one of `passed failed not_applicable exception invalid_outcome
    unresolved_slot unknown`."""
    detail: str


class PackSession(Protocol):
    """One session with a pack, wherever its backend is.

    Every method but the last two raises OracleFault; OracleError stops the run.
    """

    async def reset(self) -> None:
        """Start the episode."""

    async def call_tool(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> dict[str, Json]:
        """Run one tool call; a non-object that came whole does not end the session."""

    async def state_hash(self) -> str:
        """Return the content hash of the backend's state."""

    async def state(self) -> dict[str, Json]:
        """Return the backend's state."""

    async def run_assertion(self, name: str, task: dict[str, Json]) -> AssertionReply:
        """Run one assertion."""

    def foresee_call(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> None:
        """Tell that `state_hash`, this call and `state_hash` are asked next.

        The call is made once the first hash is there, and only then.
        """

    def foresee_end(self, assertions: Sequence[str], task: dict[str, Json]) -> None:
        """Tell that `state_hash`, these assertions and `close` are asked next."""

    async def list_tools(self) -> Json:
        """Return what the backend names as its tools."""

    async def assertion_names(self) -> Json:
        """Return the names of the pack's assertions."""

    async def close(self) -> None:
        """End the session and everything that belongs to it; safe to repeat."""

    async def abort(self, how: str) -> None:
        """End it at once, without asking; never raises a fault."""

    def evidence(self) -> dict[str, Json]:
        """Return what it left behind and how it ended."""


class PackHost(Protocol):
    """What opens sessions with one pack; an async context manager."""

    applied: dict[str, Json]

    async def __aenter__(self) -> Self:
        """Start it."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all sessions and everything that was started."""

    async def open_session(
        self, context: SessionContext, *, deadline: float
    ) -> PackSession:
        """Open a session; `deadline` is the episode's, on anyio's clock."""

    async def confirm_identity(self) -> None:
        """Raise OracleError where the oracle is not the certified one (any more)."""
