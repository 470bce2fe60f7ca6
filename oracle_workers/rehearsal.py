"""A worker's loop, run in the host on a stand-in pack before any worker is forked.

The interpreter adapts code to what it meets, and remembers where it found names and
methods, in whatever process runs it first. Done here, no worker does it again: each
would write all of that into pages of its own. No code of a pack takes part, and
nothing that is answered here is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from oracle_workers import frames, loop, plain_json
from oracle_workers.python_backend import PythonPack
from oracle_workers.session import Session

_ROUNDS = 25
"""Past the number of runs after which the interpreter adapts code (8 and some)."""
_CONTEXT: dict[str, Any] = {
    "clock": "2000-01-01T00:00:00+00:00",
    "seed": 1,
    "timeout_s": 1.5,
    "task_id": "rehearsal",
}
_SCENE: tuple[dict[str, Any], ...] = (
    {"op": "reset"},
    {"op": "state_hash"},
    {"op": "call_tool", "name": "ask", "arguments": {"a": "b"}, "turn_index": 2},
    {"op": "run_assertion", "name": "nothing", "task": {"slots": {"a": 1}}},
    {"op": "close"},
)


def _stand_in() -> PythonPack:
    """Return what has the form of a pack."""
    functions: dict[str, Callable[..., Any]] = {
        "list_tools": lambda: ["ask"],
        "reset": lambda **_: None,
        "call_tool": lambda name, arguments, **_: {name: [arguments, 1, 2.5]},
        "get_state": lambda: {"rows": [{"id": "a", "amount": 1}], "empty": {}},
    }
    return PythonPack(functions, {"nothing": lambda **_: None}, b"{}")


def run() -> None:
    """Have one session answer a scene many times, into nothing."""
    asked, asking = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for _ in range(_ROUNDS):
            for request in _SCENE:
                frames.write_frame(asking, plain_json.encode(request))
        os.close(asking)
        # A function of C works out at its first call how it takes arguments by name.
        os.close(os.dup2(nothing, asking, inheritable=False))
        session = Session({}, _CONTEXT, _stand_in())
        loop.answer_all(session, Session.operations, asked, nothing)
    finally:
        os.close(asked)
        os.close(nothing)
