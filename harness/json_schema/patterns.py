"""`pattern` on a linear-time engine, since it meets a model's text here.

RE2 has no look-around and no back-references, so such patterns are refused when
the pack loads; `$` matches only at the very end and `\\d` is ASCII, as in ECMA-262.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache


class PatternRefusedError(ValueError):
    """The pattern is not one that RE2 can run."""


@lru_cache(maxsize=1024)
def compile_search(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether the pattern occurs in a text.

    Raises PatternRefusedError.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except (re2.error, UnicodeEncodeError) as error:
        problem = error.args[0]
        text = problem.decode() if isinstance(problem, bytes) else str(error)
        raise PatternRefusedError(text) from None
    search = compiled.search
    return lambda text: search(text) is not None
