"""SHA-256 without the rest of `hashlib`.

`hashlib` brings OpenSSL into a process, some megabytes that every fork of it copies
the map of; the interpreter's own module gives the same digests.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_MODULES = ("_sha2", "_sha256", "hashlib")
"""From Python 3.12 on, before that, and where an interpreter was built without."""


def _found() -> Callable[[bytes], Any]:
    for name in _MODULES:
        try:
            function: Callable[[bytes], Any] = importlib.import_module(name).sha256
        except ImportError:
            continue
        return function
    raise ImportError("this interpreter has no SHA-256")


sha256 = _found()
