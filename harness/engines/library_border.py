"""The border to a model library: what it raises becomes an error of the engine.

A library raises what it likes, of any class, so this is one of the few places where
everything is attributed. Errors of our own and cancellation pass through untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from harness.errors import EngineError, FairtrialError


@dataclass(frozen=True, slots=True)
class LibraryBorder:
    """A context manager around calls into a library; raises EngineError."""

    code: str
    """`eval_engine_start_failed` while loading, `eval_engine_failed` afterwards."""
    problem: str
    where: str
    recovery: str

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, FairtrialError):
            raise EngineError(
                self.code,
                self.problem,
                where=self.where,
                actual=_words(error),
                recovery=self.recovery,
            ) from error


def _words(error: Exception) -> str:
    """Return class and message, of a long message its first lines."""
    lines = str(error).strip().splitlines()[:6]
    return "\n".join(
        [f"{type(error).__name__}: {lines[0] if lines else ''}", *lines[1:]]
    )
