"""A worker's session with a pack: one operation at a time, then the end.

The running trace keeps arguments as they were sent and results as they were
answered, whatever the pack later does to the objects. Where the backend is an
endpoint, the worker has the assertions alone, and state and trace come with the
request.
"""

from __future__ import annotations

import datetime
from typing import Any, Final, NoReturn

from oracle_workers import assertions, loop, plain_json
from oracle_workers.own_builtins import OWN_BUILTINS
from oracle_workers.python_backend import PackBrokenError, PythonPack, RunContext

globals()["__builtins__"] = OWN_BUILTINS

_Called = tuple[bytes, bytes, str, int]
"""Arguments as sent, result as answered, tool and turn."""


def run(
    config: dict[str, Any], pack: PythonPack | None, context: dict[str, Any]
) -> NoReturn:
    """Serve one session on the protocol descriptor; does not return."""
    loop.serve(Session(config, context, pack), Session.operations)


class Session:
    """One task attempt's dealings with a pack."""

    def __init__(
        self, config: dict[str, Any], context: dict[str, Any], pack: PythonPack | None
    ) -> None:
        self._config = config
        self._context = context
        self._clock: datetime.datetime | None = None
        self._loaded = pack
        self._trace: list[_Called] = []

    @property
    def _pack(self) -> PythonPack:
        if self._loaded is None:
            raise PackBrokenError("the pack is not imported yet")
        return self._loaded

    def _import(self, _message: dict[str, Any]) -> bytes:
        if self._loaded is None:
            self._loaded = PythonPack.load(self._config["pack"])
        return b"true"

    def _list_tools(self, _message: dict[str, Any]) -> bytes:
        return plain_json.encode(self._pack.list_tools())

    def _assertion_names(self, _message: dict[str, Any]) -> bytes:
        return plain_json.encode(sorted(self._pack.assertions))

    def _reset(self, message: dict[str, Any]) -> bytes:
        self._trace.clear()
        self._pack.reset(self._run_context(None), message.get("fixtures"))
        return b"true"

    def _call_tool(self, message: dict[str, Any]) -> bytes:
        name, turn_index = message["name"], message["turn_index"]
        arguments = message["arguments"]
        sent = plain_json.encode_own(arguments)
        result = plain_json.encode(
            self._pack.call_tool(name, arguments, self._run_context(turn_index))
        )
        self._trace.append((sent, result, name, turn_index))
        return result

    def _state(self, _message: dict[str, Any]) -> bytes:
        return plain_json.encode(self._pack.get_state())

    def _state_hash(self, _message: dict[str, Any]) -> bytes:
        return loop.state_hash(self._pack.get_state())

    def _run_assertion(self, message: dict[str, Any]) -> bytes:
        elsewhere = "state" in message
        verdict = assertions.judge(
            self._pack.assertions.get(message["name"]),
            state=message["state"] if elsewhere else self._pack.get_state(),
            trace=message["trace"]
            if elsewhere
            else [_shown(called) for called in self._trace],
            task=message["task"],
            context=self._run_context(None),
        )
        return plain_json.encode(verdict)

    def _close(self, _message: dict[str, Any]) -> bytes:
        return b"true"

    def _run_context(self, turn_index: int | None) -> RunContext:
        context = self._context
        if self._clock is None:
            self._clock = datetime.datetime.fromisoformat(context["clock"])
        return RunContext(
            self._clock,
            context["seed"],
            context["timeout_s"],
            context["task_id"],
            turn_index,
        )

    operations: Final[dict[str, loop.Operation]] = {
        "import": _import,
        "list_tools": _list_tools,
        "assertion_names": _assertion_names,
        "reset": _reset,
        "call_tool": _call_tool,
        "state": _state,
        "state_hash": _state_hash,
        "run_assertion": _run_assertion,
        "close": _close,
    }


def _shown(called: _Called) -> dict[str, Any]:
    """Return a call as assertions see it, new each time: they may change it."""
    sent, result, name, turn_index = called
    return {
        "arguments": plain_json.decode_canonical(sent),
        "result": plain_json.decode_canonical(result),
        "tool": name,
        "turn_index": turn_index,
    }
