"""What certification needs of the oracle's client, which is passed in.

`harness.oracle.certifying` implements these protocols with real workers; nothing in
this room imports it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from harness.benchmark.pack_code import PackCode
from harness.canonical import Json

HostMode = Literal["shared", "per_task"]


class Verdict(Protocol):
    """The answer of one assertion."""

    @property
    def status(self) -> str:
        """One of passed, failed, not_applicable, infrastructure_error."""

    @property
    def reason_code(self) -> str:
        """The code of the reason."""

    @property
    def detail(self) -> str:
        """Words for people."""


class GoldSession(Protocol):
    """One pack session in one worker; every method may raise the fault type."""

    async def reset(self) -> None:
        """Put the fixtures back."""

    async def call_tool(
        self, name: str, arguments: dict[str, Json], *, turn_index: int
    ) -> dict[str, Json]:
        """Run one call and return its result."""

    async def state_hash(self) -> str:
        """Return the content hash of the state."""

    async def run_assertion(self, name: str, task: dict[str, Json]) -> Verdict:
        """Run one assertion."""

    async def list_tools(self) -> Json:
        """Return what the backend names as its tools."""

    async def assertion_names(self) -> Json:
        """Return the names of the pack's assertions."""

    async def close(self) -> None:
        """End the session."""

    def evidence(self) -> dict[str, Json]:
        """Return captured output and how the session ended."""


class GoldHost(Protocol):
    """One running pack host."""

    @property
    def applied(self) -> dict[str, Json]:
        """The containment as applied."""

    async def open_session(
        self, task_id: str, seed: int, clock: str, *, deadline: float
    ) -> GoldSession:
        """Start a worker for one task."""


class GoldOracle(Protocol):
    """Starts pack hosts."""

    @property
    def fault_type(self) -> type[Exception]:
        """The exception that trouble on the pack's side raises."""

    def host(
        self, code: PackCode, *, mode: HostMode, call_timeout_s: float | None = None
    ) -> AbstractAsyncContextManager[GoldHost]:
        """Return a host of the pack, to be entered."""
