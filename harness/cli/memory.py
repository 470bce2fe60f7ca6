"""How the process asks for memory, so that what a long run frees is given back.

By itself the C library moves its limit for memory of its own kind up with every large
piece that is freed; tables that grow with a run then lie in the heap, and what they
leave behind stays there.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Final

_MMAP_THRESHOLD: Final = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h."""
_LARGE_BYTES: Final = 128 * 1024


def give_memory_back() -> None:
    """Keep large pieces out of the heap; call it before anything is allocated.

    Arrow's own allocator would keep 20 MB and more for the few that a run gives it.
    Without glibc nothing else changes.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
