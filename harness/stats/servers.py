"""Which servers answered, as far as they told: name, version and served model.

A score is a model's behind a server, so the two are shown together. What a server
tells is a claim and enters no identity. Memory is bounded: an endpoint that gives
every response another name ends in one last entry for all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.evidence.records import Record

MOST_NAMED: Final = 20
"""How many different servers are named; further ones are counted together."""


@dataclass(frozen=True, slots=True)
class ServedBy(Record):
    """The responses of one server."""

    server: str | None
    """The `server` header and the system fingerprint; None where it does not tell."""
    served_model: str | None
    responses: int
    is_rest: bool
    """Whether this counts what came from all servers that are not named."""


class Servers:
    """Counts responses by what their server told."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str | None, str | None], int] = {}
        self._rest = 0

    def add(self, server: str | None, served_model: str | None) -> None:
        """Count one received completion."""
        key = (server, served_model)
        if key in self._counts or len(self._counts) < MOST_NAMED:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self._rest += 1

    def result(self) -> tuple[ServedBy, ...]:
        """Return all servers, the most frequent first, what is not named last."""
        named = sorted(
            (
                ServedBy(*key, count, is_rest=False)
                for key, count in self._counts.items()
            ),
            key=lambda s: (-s.responses, s.server or "", s.served_model or ""),
        )
        rest = [ServedBy(None, None, self._rest, is_rest=True)] if self._rest else []
        return (*named, *rest)
