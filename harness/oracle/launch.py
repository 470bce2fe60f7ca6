"""Starting a pack host without giving it anything of the evaluator.

The evaluator holds gold and keys, so it is never forked: `multiprocess` spawns a new
interpreter at a start module. The caller's `__main__` is set aside meanwhile (the
child would import it), and so is the environment (the child would inherit it). From
then on this process is not dumpable, and it adopts orphans of its hosts.
"""

from __future__ import annotations

import os
import socket
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oracle_workers import start, syscalls
from oracle_workers.contain import ENVIRONMENT

if TYPE_CHECKING:
    from multiprocess.process import BaseProcess

_NEEDED_TO_START = ("PYTHONPATH", *start.INTERPRETER_VARIABLES)


def spawn_keeper(leash: socket.socket, door: socket.socket) -> BaseProcess:
    """Start the keeper of a pack host with its two sockets."""
    import multiprocess

    guard_this_process()
    process = multiprocess.get_context("spawn").Process(
        target=start.run, args=(leash, door, ENVIRONMENT), daemon=True
    )
    with _main_set_aside(), _environment_set_aside():
        process.start()
    return process


def guard_this_process() -> None:
    """Refuse core dumps and foreign debuggers, and become the reaper of orphans."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


@contextmanager
def _main_set_aside() -> Iterator[None]:
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _environment_set_aside() -> Iterator[None]:
    # Nothing else runs meanwhile: this is one step of a single-threaded event loop.
    kept = dict(os.environ)
    wanted = dict(ENVIRONMENT)
    wanted |= {name: kept[name] for name in _NEEDED_TO_START if name in kept}
    try:
        os.environ.clear()
        os.environ.update(wanted)
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
