"""The one door to a pack's oracle: a local backend or an endpoint, by the pack."""

from __future__ import annotations

from pathlib import Path

from harness.oracle.contracts import (
    HostMode,
    IsolationLevel,
    PackCode,
    PackHost,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.endpoint_host import EndpointHost
from harness.oracle.host import OracleHost


def open_host(
    pack: PackCode,
    *,
    level: IsolationLevel,
    mode: HostMode = "shared",
    deadlines: WorkerDeadlines | None = None,
    limits: WorkerLimits | None = None,
    scratch: Path | None = None,
) -> PackHost:
    """Return the host that the pack needs, to be entered.

    Raises PackError and UsageError for an endpoint that cannot be used.
    """
    if pack.endpoint is None:
        return OracleHost(
            pack,
            level=level,
            mode=mode,
            deadlines=deadlines,
            limits=limits,
            scratch=scratch,
        )
    return EndpointHost(
        pack,
        pack.endpoint,
        level=level,
        mode=mode,
        deadlines=deadlines,
        limits=limits,
        scratch=scratch,
    )
