"""Python that a pack brings, as syntax alone: nothing of it is run.

Text that is nested deeper than the parser or a reading of its tree can go is no Python
here, however right it is: CPython gives it up with a MemoryError or a RecursionError.
"""

from __future__ import annotations

import ast

from harness.canonical import Json


class NotPythonError(ValueError):
    """The text cannot be read; the message says why."""

    def __init__(self, problem: str, line: int = 1) -> None:
        self.line = line
        """Where the problem is, from 1."""
        super().__init__(problem)


def parse_module(source: bytes, name: str) -> ast.Module:
    """Return the tree of a file; raise NotPythonError."""
    try:
        return ast.parse(source, filename=name)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise NotPythonError(str(error), line) from None
    except (MemoryError, RecursionError):
        raise NotPythonError("nested too deeply") from None


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression; raise NotPythonError."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise NotPythonError(str(error)) from None
    except (MemoryError, RecursionError):
        raise NotPythonError("nested too deeply") from None


def literal_of(expression: ast.expr) -> Json:
    """Return the value of a literal; raise NotPythonError for any other expression."""
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        raise NotPythonError("an expression that is no literal") from None
    except (MemoryError, RecursionError):
        raise NotPythonError("nested too deeply") from None
