"""The part of the drill that lives inside a pack and breaks it from there.

This file is copied into a scratch copy of a pack, next to its modules, and takes
their functions over when they are imported. It is pack code: standard library only,
nothing of fairtrial. `PLAN_FILE` beside it names a file that says which task meets
which fault, and a log outside the run's evidence; with no such file the pack behaves
as it always did. Every reset, call and injected fault is one line of the log, which
is printed where containment lets a worker write nowhere.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLAN_FILE = "fairtrial_drill.json"
_NOISE = 1 << 20
_SLOW_S = 0.5
_FOREVER_S = 3600.0
_DEPTH = 100
_HUGE = 12 << 20
_EXIT_STATUS = 3
PRINTED = "fairtrial-drill "
"""Begins each line of the record where it may only be printed."""


class _Scene:
    """What this worker's session has come to so far."""

    def __init__(self) -> None:
        self.task_id = ""
        self.fault: dict[str, Any] | None = None
        self.log: str | None = None
        self.counts = {"call": 0, "state": 0, "assertion": 0}
        self.inside = False

    def begin(self, task_id: str) -> None:
        plan = _read_plan()
        self.task_id = task_id
        self.log = plan.get("log")
        self.fault = plan.get("faults", {}).get(task_id)
        self.counts = dict.fromkeys(self.counts, 0)

    def note(self, event: str, **fields: Any) -> None:
        """Append one line to the log, whole, in one write."""
        if self.log is None:
            return
        line = {"event": event, "task": self.task_id, "pid": os.getpid(), **fields}
        data = json.dumps(line).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(self.log, flags, 0o600)
        except PermissionError:
            os.write(1, PRINTED.encode() + data)
            return
        os.write(descriptor, data)
        os.close(descriptor)

    def due(self, operation: str, moment: str) -> dict[str, Any] | None:
        """Return the fault if this is its place, and note that it strikes."""
        fault = self.fault
        if fault is None or fault["at"] != operation or fault["moment"] != moment:
            return None
        if operation in self.counts and fault["index"] != self.counts[operation]:
            return None
        self.note("injected", fault=fault["name"])
        return fault


_scene = _Scene()


def take_over_backend(module: dict[str, Any]) -> None:
    """Wrap the functions of a backend in place."""
    _break_import()
    module["reset"] = functools.partial(_reset, module["reset"])
    module["call_tool"] = functools.partial(_call, module["call_tool"])
    module["get_state"] = functools.partial(_state, module["get_state"])


def take_over_assertions(module: dict[str, Any]) -> None:
    """Wrap the assertions of a module in place."""
    declared = module.get("ASSERTIONS")
    if isinstance(declared, dict):
        module["ASSERTIONS"] = {n: _assertion(f) for n, f in declared.items()}
        return
    for name, value in list(module.items()):
        if name.startswith("assert_") and callable(value):
            module[name] = _assertion(value)


def _read_plan() -> dict[str, Any]:
    place = Path(__file__).with_name(PLAN_FILE)
    try:
        plan = json.loads(Path(json.loads(place.read_bytes())["plan"]).read_bytes())
    except FileNotFoundError:
        return {}
    return dict(plan)


def _break_import() -> None:
    """Count this import with those of all other processes; break the planned ones."""
    plan = _read_plan()
    imports = plan.get("imports")
    if imports is None:
        return
    number = 1
    while True:
        try:
            os.close(os.open(f"{imports['folder']}/{number}", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            number += 1
    action = imports["faults"].get(str(number))
    if action is not None:
        _scene.log = plan["log"]
        _scene.note("injected", fault=f"import {action}")
        _misbehave(action)


def _reset(plain: Callable[..., Any], *, ctx: Any, fixtures: Any = None) -> Any:
    _scene.begin(ctx.task_id)
    _scene.note("reset")
    _break("reset", "before")
    plain(ctx=ctx, fixtures=fixtures)
    if _scene.fault is not None and _scene.fault["at"] == "close":
        # The loop of the worker asks pack code nothing when it closes; watching its
        # own calls is the one way for a pack to be there.
        sys.setprofile(_at_close)


def _at_close(frame: Any, event: str, _argument: Any) -> None:
    if event == "call" and frame.f_code.co_name == "_close":
        sys.setprofile(None)
        _break("close", "before")


def _call(plain: Callable[..., Any], name: str, arguments: Any, *, ctx: Any) -> Any:
    index = _scene.counts["call"]
    _scene.note("call", index=index, tool=name)
    _break("call", "before")
    _scene.inside = True
    try:
        result = plain(name, arguments, ctx=ctx)
    finally:
        _scene.inside = False
    fault = _scene.due("call", "after")
    _scene.counts["call"] += 1
    return result if fault is None else _lie(fault, result)


def _state(plain: Callable[..., Any]) -> Any:
    if _scene.inside:
        return plain()
    fault = _scene.due("state", "before")
    _scene.counts["state"] += 1
    return plain() if fault is None else _lie(fault, None)


def _assertion(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def wrapped(**arguments: Any) -> Any:
        fault = _scene.due("assertion", "before")
        _scene.counts["assertion"] += 1
        return plain(**arguments) if fault is None else _lie(fault, None)

    return wrapped


def _break(operation: str, moment: str) -> None:
    fault = _scene.due(operation, moment)
    if fault is not None:
        _misbehave(fault["do"])


def _lie(fault: dict[str, Any], result: Any) -> Any:
    """Misbehave, or return something else than the pack did."""
    action = fault["do"]
    if action in _LIES:
        return _LIES[action]()
    if action in ("drop", "retype"):
        return _altered(result, fault["path"], action)
    _misbehave(action)
    return result


def _altered(result: Any, path: list[str], action: str) -> Any:
    copy = json.loads(json.dumps(result))
    holder = copy
    for step in path[:-1]:
        holder = holder[int(step) if isinstance(holder, list) else step]
    last: Any = int(path[-1]) if isinstance(holder, list) else path[-1]
    if action == "drop":
        del holder[last]
    else:
        holder[last] = {"was": holder[last]}
    return copy


def _deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(_DEPTH):
        value = {"deeper": value}
    return value


_LIES: dict[str, Callable[[], Any]] = {
    "return a list": lambda: [1, 2],
    "return text": lambda: "done",
    "return nothing": lambda: None,
    "return NaN": lambda: {"value": float("nan")},
    "return a set": lambda: {"value": {1}},
    "return too deep": _deep,
    "return too much": lambda: {"value": "x" * _HUGE},
    "return an error without a code": lambda: {"error": {"message": "no"}},
}


def _misbehave(action: str) -> None:
    _ACTIONS[action]()


def _exit_leaving_child() -> None:
    if os.fork() == 0:
        time.sleep(_FOREVER_S)
        os._exit(0)
    os._exit(_EXIT_STATUS)


def _leave_child() -> None:
    if os.fork() == 0:
        time.sleep(_FOREVER_S)
        os._exit(0)


def _raise(error: BaseException) -> None:
    raise error


def _protocol() -> int:
    number: int = sys.modules["oracle_workers.contain"].PROTOCOL_DESCRIPTOR
    return number


def _garble() -> None:
    os.write(_protocol(), b"\xff" * 64)


def _print_noise() -> None:
    print("drill", flush=True)  # noqa: T201 - noise is what is wanted
    os.write(1, b"x" * _NOISE)


_ACTIONS: dict[str, Callable[[], None]] = {
    "exit": lambda: os._exit(_EXIT_STATUS),
    "exit leaving a child": _exit_leaving_child,
    "kill itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "freeze": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "hang": lambda: time.sleep(_FOREVER_S),
    "raise": lambda: _raise(RuntimeError("drill")),
    "raise SystemExit": lambda: _raise(SystemExit(0)),
    "close the protocol": lambda: os.close(_protocol()),
    "garble the protocol": _garble,
    "print": _print_noise,
    "leave a child": _leave_child,
    "be slow": lambda: time.sleep(_SLOW_S),
}
