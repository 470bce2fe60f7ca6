"""What a verification checked, what it found, and what it could not do.

Checks are counted by what was checked. A violation names its place. What could not
be recomputed is neither right nor wrong: it is listed with its reason, and a result
with such a list says so. Nothing here decides how a finding is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType
from typing import Final

from harness.canonical import Json, canonical_json
from harness.errors import FairtrialError, Violation

RECOVERY: Final = "bring back an intact copy of the run folder"


class Findings:
    """Grows while a run is verified."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        """How often each thing was checked, in the order of first checking."""
        self._violations: dict[Violation, None] = {}
        self.unchecked: Counter[tuple[str, str]] = Counter()
        """What could not be checked, by (what, why)."""
        self._refusals = _Refusals(self.add)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Everything that is wrong, each once, in the order of finding."""
        return tuple(self._violations)

    def count(self, what: str, number: int = 1) -> None:
        """Count checks that were made."""
        self.checked[what] += number

    def leave(self, what: str, why: str, number: int = 1) -> None:
        """Note something that could not be checked."""
        self.unchecked[what, why] += number

    def add(self, violations: Iterable[Violation]) -> None:
        """Take violations in."""
        self._violations.update(dict.fromkeys(violations))

    def under(self, prefix: str) -> Findings:
        """Return a copy whose every place stands behind a prefix."""
        copy = Findings()
        copy.checked.update(self.checked)
        copy.unchecked.update(
            {(prefix + what, why): n for (what, why), n in self.unchecked.items()}
        )
        copy.add(replace(each, where=prefix + each.where) for each in self.violations)
        return copy

    def differs(
        self,
        where: str,
        problem: str,
        expected: str,
        actual: str,
        recovery: str = RECOVERY,
    ) -> None:
        """Report that something is not what it has to be."""
        self.add(
            [
                Violation(
                    "eval_artifact_invalid", where, problem, expected, actual, recovery
                )
            ]
        )

    def equal(self, what: str, where: str, expected: Json, actual: Json) -> bool:
        """Count one comparison and report it if the two values differ."""
        self.count(what)
        ours, theirs = canonical_json(expected), canonical_json(actual)
        if ours == theirs:
            return True
        self.differs(where, f"{what}: not what follows", ours[:400], theirs[:400])
        return False

    def refusals(self) -> AbstractContextManager[None]:
        """Report what the block refuses, and go on after it."""
        return self._refusals


class _Refusals:
    """Takes what a block refuses; one for all blocks, since many stand at a record."""

    def __init__(self, add: Callable[[Iterable[Violation]], None]) -> None:
        self._add = add

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, FairtrialError):
            return False
        self._add(error.violations)
        return True
