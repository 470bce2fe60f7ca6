"""The hostile packs: one declaration a trick, read by the tests and by the docs.

A file of `packs/` says what the pack does, what would count as an escape, which level
claims to hold it, and the cause with which its episode ends there. Levels below that
one let it through, and the tests show that they do: the escape has to be seen there,
in the ways that `shows` names.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKS = Path(__file__).parent / "packs"
LEVELS = ("process", "confined", "namespaces")
NO_LEVEL = "none"
GROUPS = {
    "deadlines": "Deadlines and what is left behind",
    "own-process": "Its own process and the protocol",
    "results": "What it returns",
    "limits": "Limits",
    "reach": "Files, memory and sockets of others",
    "writes": "What stays",
    "others": "The evaluator and its host",
}
"""Folders of `packs/` with their titles, in the order of the page."""
WAYS = (
    "report",
    "outside",
    "process",
    "folder",
    "descriptor",
    "socket",
    "host",
    "others",
    "verdict",
    "late",
)
"""How an escape is seen: what the pack says it got, a change outside its folder, a
process, folder, descriptor or socket left, a host that died, another episode that
noticed, an assertion that did not pass, an end long after the deadline."""


@dataclass(frozen=True)
class Trick:
    """One hostile pack."""

    name: str
    group: str
    does: str
    escape: str
    """What would count as one."""
    held_by: str
    level: str
    """The lowest level that claims to hold it; `none` where no level does."""
    ends: str
    """The cause of the episode, or of the run, where it is held."""
    code: str
    place: str = "look"
    """Where the code runs: `look` and `purchase` are calls, or `import`, `reset`,
    `state`, `assertion`."""
    shows: tuple[str, ...] = ()
    """How the escape is seen where no claim is made; () if it cannot be shown on
    every machine."""
    ends_below: str | None = None
    """The cause where no claim is made, if it is another one."""
    noticed: str | None = None
    """The cause of a whole run in which it gets through, if the run sees it."""
    needs: str | None = None
    """A part of a level that older kernels lack."""
    host: str = "shared"
    """`own`: the trick is not mixed with the others in one pack."""
    mode: str = "shared"
    episodes: int = 1
    call_s: float = 0.5
    import_s: float = 10.0
    cpu_s: int = 30

    def is_held_at(self, level: str) -> bool:
        """Tell whether a level claims to hold it."""
        return self.level != NO_LEVEL and LEVELS.index(level) >= LEVELS.index(
            self.level
        )

    def cause_at(self, level: str) -> str:
        """Return the cause with which its episode ends at a level."""
        below = None if self.is_held_at(level) else self.ends_below
        return below or self.ends

    @property
    def has_own_host(self) -> bool:
        """Whether it needs a pack and hosts of its own."""
        return self.host == "own" or self.place == "import"


def read_tricks() -> tuple[Trick, ...]:
    """Read every declaration, group by group; ValueError for an impossible one."""
    return tuple(
        _read(path) for group in GROUPS for path in sorted((PACKS / group).iterdir())
    )


def _read(path: Path) -> Trick:
    stated: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    trick = Trick(
        path.stem,
        path.parent.name,
        **{**stated, "shows": tuple(stated.get("shows", ()))},
    )
    if trick.level not in (*LEVELS, NO_LEVEL):
        raise ValueError(f"{path.name}: no level is called {trick.level}")
    if trick.level == "process" and trick.shows:
        raise ValueError(f"{path.name}: nothing is below `process`")
    if not set(trick.shows) <= set(WAYS):
        raise ValueError(f"{path.name}: shows {trick.shows}")
    return trick
