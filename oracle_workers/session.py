"""A worker's session with a pack: one operation at a time, then the end.

The running trace keeps arguments as they were sent and results as they were
answered, whatever the pack later does to the objects. Where the backend is an
endpoint, the worker has the assertions alone, and state and trace come with the
request.
"""

from __future__ import annotations

from typing import Any, NoReturn

from oracle_workers import assertions, loop, plain_json
from oracle_workers.own_builtins import OWN_BUILTINS
from oracle_workers.python_backend import PackBrokenError, PythonPack, context_of

globals()["__builtins__"] = OWN_BUILTINS


def run(
    config: dict[str, Any], pack: PythonPack | None, context: dict[str, Any]
) -> NoReturn:
    """Serve one session on the protocol descriptor; does not return."""
    loop.serve(_Session(config, context, pack).operations)


class _Session:
    def __init__(
        self, config: dict[str, Any], context: dict[str, Any], pack: PythonPack | None
    ) -> None:
        self._config = config
        self._context = context
        self._loaded = pack
        self._trace: list[dict[str, Any]] = []
        self.operations: dict[str, loop.Operation] = {
            "import": self._import,
            "list_tools": self._list_tools,
            "assertion_names": self._assertion_names,
            "reset": self._reset,
            "call_tool": self._call_tool,
            "state": self._state,
            "state_hash": self._state_hash,
            "run_assertion": self._run_assertion,
            "close": self._close,
        }

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
        self._pack.reset(context_of(self._context, None), message.get("fixtures"))
        return b"true"

    def _call_tool(self, message: dict[str, Any]) -> bytes:
        name, turn_index = message["name"], message["turn_index"]
        sent = plain_json.encode(message["arguments"])
        result = plain_json.encode(
            self._pack.call_tool(
                name, message["arguments"], context_of(self._context, turn_index)
            )
        )
        self._trace.append(
            {
                "tool": name,
                "arguments": plain_json.decode(sent),
                "result": plain_json.decode(result),
                "turn_index": turn_index,
            }
        )
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
            else plain_json.decode(plain_json.encode(self._trace)),
            task=message["task"],
            context=context_of(self._context, None),
        )
        return plain_json.encode(verdict)

    def _close(self, _message: dict[str, Any]) -> bytes:
        return b"true"
