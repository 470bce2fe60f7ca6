"""The host of an endpoint pack: two pack hosts that share nothing.

One houses the HTTP client: no pack code, the credential in its workers only, and the
relay as its only way out, at every level. The other houses the pack's assertions,
contained as any pack code is, without network and credential. What the endpoint says
that it is must equal what the pack declares: when the host starts, whenever a session
is created, and when `confirm_identity` asks again; any difference stops the run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from harness.benchmark.endpoint_config import EndpointConfig, load_endpoint
from harness.canonical import Json, canonical_json, json_equal
from harness.errors import OracleError
from harness.oracle.contracts import (
    HostMode,
    IsolationLevel,
    OracleFault,
    PackCode,
    SessionContext,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.credentials import resolve_credentials
from harness.oracle.endpoint_session import EndpointSession
from harness.oracle.host import OracleHost
from harness.oracle.residents import EndpointResident, PackResident
from harness.oracle.session import OracleSession

_IDENTIFYING = SessionContext("identify", 0, "2000-01-01T00:00:00+00:00")


class EndpointHost:
    """The client side of an endpoint pack; one per pack and run."""

    def __init__(
        self,
        pack: PackCode,
        endpoint: Path,
        *,
        level: IsolationLevel,
        mode: HostMode = "shared",
        deadlines: WorkerDeadlines | None = None,
        limits: WorkerLimits | None = None,
        scratch: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Check the endpoint's file and resolve its credentials.

        `environment` stands in for this process's. Raises PackError and UsageError.
        """
        self._endpoint: EndpointConfig = load_endpoint(endpoint, pack.root)
        self._credentials = resolve_credentials(
            self._endpoint, os.environ if environment is None else environment
        )
        self._deadlines = deadlines or WorkerDeadlines()
        self._clients = OracleHost(
            EndpointResident(self._endpoint, pack.fixtures),
            level=level,
            deadlines=self._deadlines,
            limits=limits,
            scratch=scratch,
        )
        self._judges = OracleHost(
            PackResident(replace(pack, backend=None, endpoint=None)),
            level=level,
            mode=mode,
            deadlines=self._deadlines,
            limits=limits,
            scratch=scratch,
        )
        self._sessions: set[EndpointSession] = set()
        self._identity: Json = None
        """What the endpoint said when it was first asked."""
        self.applied: dict[str, Json] = {}
        """Containment of the assertions as applied, and of the client."""

    async def __aenter__(self) -> Self:
        """Start both hosts and ask the endpoint who it is.

        Raises OracleError for another oracle or a level that cannot be had, and
        OracleFault when the endpoint or the assertions cannot be used.
        """
        try:
            await self._start()
            self.applied = {
                **self._judges.applied,
                "endpoint_client": {**self._clients.applied, "network": "relay"},
            }
            await self.confirm_identity()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def _start(self) -> None:
        """Start both hosts at once; raise the first failure in their order."""
        failures: dict[OracleHost, OracleFault | OracleError] = {}

        async def start(host: OracleHost) -> None:
            try:
                await host.__aenter__()
            except (OracleFault, OracleError) as error:
                failures[host] = error

        async with anyio.create_task_group() as group:
            group.start_soon(start, self._judges)
            group.start_soon(start, self._clients)
        for host in (self._judges, self._clients):
            if host in failures:
                raise failures[host]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Delete all remote sessions, and end everything that was started."""
        await self.aclose()

    async def aclose(self) -> None:
        """Delete all remote sessions and end everything; safe to repeat."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for session in tuple(self._sessions):
                    group.start_soon(session.abort, "host closed")
            await self._clients.aclose()
            await self._judges.aclose()

    async def open_session(
        self, context: SessionContext, *, deadline: float
    ) -> EndpointSession:
        """Start a client worker; `deadline` is the episode's, on anyio's clock.

        Raises OracleFault of operation `import`.
        """
        client = await self.open_client(context, deadline=deadline)
        session = EndpointSession(
            self, client, context, deadline, self._sessions.discard
        )
        self._sessions.add(session)
        return session

    async def confirm_identity(self) -> None:
        """Ask the endpoint who it is; raises OracleError for anybody else.

        Raises OracleFault when it does not answer.
        """
        end = anyio.current_time() + self._deadlines.import_s + self._deadlines.call_s
        client = await self.open_client(_IDENTIFYING, deadline=end)
        try:
            attestation = self._endpoint.attestation
            found = await client.exchange(
                "call", {"op": "identify", "attested": attestation is not None}
            )
        finally:
            await client.abort("identified")
        self.compare(found["identity"], "when it was asked")
        if found["attestation"] != attestation:
            raise self._drift(
                "its conformance document is not the attested one",
                "GET /v1/conformance",
                str(attestation),
                str(found["attestation"]),
            )

    def compare(self, identity: Json, when: str) -> None:
        """Raise OracleError unless the endpoint is what it was certified to be."""
        seen = identity if isinstance(identity, dict) else {}
        for name, expected in self._endpoint.expected.items():
            if not json_equal(seen.get(name), expected):
                raise self._drift(
                    f"its {name} is another one {when}",
                    f"identity.{name}",
                    expected,
                    canonical_json(seen.get(name))[:200],
                )
        if self._identity is None:
            self._identity = identity
        elif not json_equal(identity, self._identity):
            raise self._drift(
                f"it describes itself differently {when}",
                "identity",
                canonical_json(self._identity)[:400],
                canonical_json(identity)[:400],
            )

    async def open_client(
        self, context: SessionContext, *, deadline: float
    ) -> OracleSession:
        """Start a client worker and hand it the credential; raises OracleFault."""
        client = await self._clients.open_session(context, deadline=deadline)
        await client.exchange("import", self._credentials.introduction())
        return client

    async def open_judge(
        self, context: SessionContext, *, deadline: float
    ) -> OracleSession:
        """Start a worker for the assertions; raises OracleFault."""
        return await self._judges.open_session(context, deadline=deadline)

    @property
    def max_request_bytes(self) -> int:
        """The endpoint's cap on a request's body."""
        return self._endpoint.max_request_bytes

    @property
    def close_s(self) -> float:
        """How long a deletion may take, in seconds."""
        return self._deadlines.close_s

    def _drift(
        self, problem: str, where: str, expected: str, actual: str
    ) -> OracleError:
        return OracleError(
            "eval_oracle_identity_drift",
            f"the endpoint is not the oracle that the pack declares: {problem}",
            where=f"{self._endpoint.base_url}: {where}",
            expected=expected,
            actual=actual,
            recovery="bring the certified oracle back, or declare the new one in "
            "endpoint_config.yaml and publish again",
        )
