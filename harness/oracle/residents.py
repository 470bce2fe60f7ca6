"""What a pack host houses: a whole pack, its assertions alone, or an HTTP client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.benchmark.endpoint_config import EndpointConfig
from harness.canonical import Json
from harness.oracle import paths
from harness.oracle.contracts import PackCode, WorkerDeadlines

GRACE_S = 5.0
"""Longest time that a host of an endpoint may go on without the evaluator."""


class Resident(Protocol):
    """Tells a pack host what it houses and what that needs."""

    def payload(self, deadlines: WorkerDeadlines) -> dict[str, Json]:
        """Return the `pack` section of the host's config."""

    def readable(self) -> list[str]:
        """Return what it may read when confined."""

    def surroundings(self, deadlines: WorkerDeadlines) -> dict[str, Json]:
        """Return what its keeper has to give it beside the host."""

    @property
    def relayed(self) -> bool:
        """Whether its workers speak to an endpoint."""


@dataclass(frozen=True, slots=True)
class PackResident:
    """The modules of a pack: backend and assertions, or the assertions alone."""

    pack: PackCode
    relayed: bool = False

    def payload(self, deadlines: WorkerDeadlines) -> dict[str, Json]:
        """Return the modules, and where they may import from."""
        pack = self.pack
        return {
            "backend": None if pack.backend is None else str(pack.backend),
            "assertions": str(pack.assertions),
            "fixtures": None if pack.fixtures is None else str(pack.fixtures),
            "import_folders": paths.import_folders(pack),
            "packages": paths.package_folders(),
        }

    def readable(self) -> list[str]:
        """Return the pack's folders, the interpreter's and the system's."""
        return paths.readable(self.pack)

    def surroundings(self, deadlines: WorkerDeadlines) -> dict[str, Json]:
        """Return nothing: pack code has nothing beside it."""
        return {}


@dataclass(frozen=True, slots=True)
class EndpointResident:
    """The HTTP client of an endpoint; no code of the pack."""

    endpoint: EndpointConfig
    fixtures: Path | None
    relayed: bool = True

    def payload(self, deadlines: WorkerDeadlines) -> dict[str, Json]:
        """Return the endpoint as the client needs it; no secret is part of it."""
        endpoint = self.endpoint
        bundle = endpoint.ca_bundle
        return {
            "fixtures": None if self.fixtures is None else str(self.fixtures),
            "endpoint": {
                "host": endpoint.host,
                "port": endpoint.port,
                "prefix": endpoint.path_prefix,
                "ca_bundle": None if bundle is None else str(bundle),
                "max_request_bytes": endpoint.max_request_bytes,
                "max_response_bytes": endpoint.max_response_bytes,
                "timeout_s": _patience_s(deadlines),
                "close_s": deadlines.close_s,
            },
        }

    def readable(self) -> list[str]:
        """Return the interpreter's folders, certificates and the fixtures."""
        files = [self.fixtures, self.endpoint.ca_bundle]
        own = [str(path) for path in files if path is not None]
        room = paths.worker_room()
        return [room, *paths.interpreter(), *paths.certificates(), *own]

    def surroundings(self, deadlines: WorkerDeadlines) -> dict[str, Json]:
        """Return the relay, and the time for deleting sessions at the end."""
        return {
            "relay": {
                "host": self.endpoint.host,
                "port": self.endpoint.port,
                "timeout_s": _patience_s(deadlines),
                "readable": paths.interpreter(),
            },
            "grace_s": min(2 * deadlines.close_s, GRACE_S),
        }


def _patience_s(deadlines: WorkerDeadlines) -> float:
    """Return a time that no deadline of the evaluator reaches: it is the judge."""
    return 2 * max(
        deadlines.call_s, deadlines.reset_s, deadlines.state_s, deadlines.close_s
    )
