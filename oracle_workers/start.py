"""The start module: what the process library runs first in a new pack host.

It imports nothing but the interpreter's own `os` and `sys`, leaves the caller's
process group, and replaces itself with a bare interpreter that has a fixed
environment, a fixed hash seed, no site packages set up, and none of the start
machinery in its memory. The process id stays, so the starter still supervises it.
"""

from __future__ import annotations

import os
import sys
from socket import socket

INTERPRETER_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")
"""What some interpreters need to find themselves; carried over where it is set."""

MARK = ("FAIRTRIAL_PACK_HOST", "1")
"""Stands in the environment of every process below a keeper."""

# Our own modules are cached like any program's: compiling them at each start takes
# time, and what it leaves on the heap is mapped anew by each fork of the host.
_BOOT = (
    "import sys; sys.dont_write_bytecode = False; sys.path.insert(0, sys.argv[1]); "
    "from oracle_workers.keeper import main; main(sys.argv)"
)


def run(leash: socket, door: socket, environment: dict[str, str]) -> None:
    """Become the keeper of a pack host; does not return.

    `leash` is how the evaluator holds the keeper, `door` where it asks for workers.
    """
    os.setsid()
    for end in (leash, door):
        end.set_inheritable(True)
    room = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    carried = {
        name: os.environ[name] for name in INTERPRETER_VARIABLES if name in os.environ
    }
    os.execve(
        sys.executable,
        [
            sys.executable,
            *("-s", "-S", "-P", "-B", "-c", _BOOT),
            room,
            str(leash.fileno()),
            str(door.fileno()),
        ],
        {**environment, **carried, MARK[0]: MARK[1]},
    )
