"""The worker's loop: one pack session, one request at a time, then the end.

Requests and replies are framed JSON on the protocol descriptor. A reply holds either
`value` or `fault` (`error`: pack code raised; `malformed`: its value has no JSON
form). The running trace keeps arguments as they were sent and results as they were
answered, whatever the pack later does to the objects. The worker ends when the
evaluator kills it or lets go of the socket.
"""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Any, NoReturn

from oracle_workers import assertions, frames, plain_json
from oracle_workers.contain import PROTOCOL_DESCRIPTOR
from oracle_workers.own_builtins import OWN_BUILTINS
from oracle_workers.plain_json import NotJsonError
from oracle_workers.python_backend import (
    PackBrokenError,
    PythonPack,
    context_of,
    describe_error,
)

globals()["__builtins__"] = OWN_BUILTINS

_BORN = b'{"value":"born"}'

_exit = os._exit
_getpid = os.getpid
_sha256 = hashlib.sha256
_stdout = sys.stdout
_stderr = sys.stderr


def run(
    config: dict[str, Any], context: dict[str, Any], pack: PythonPack | None
) -> NoReturn:
    """Serve one session on the protocol descriptor; does not return."""
    try:
        frames.write_frame(PROTOCOL_DESCRIPTOR, _BORN)
        _Session(config, context, pack).serve()
    except (OSError, frames.FrameError):
        # The evaluator is gone, or pack code closed or spoiled the protocol: either
        # way there is nobody left to answer.
        _exit(71)
    _exit(0)


class _Session:
    def __init__(
        self, config: dict[str, Any], context: dict[str, Any], pack: PythonPack | None
    ) -> None:
        self._config = config
        self._context = context
        self._loaded = pack
        self._pid = _getpid()
        self._trace: list[dict[str, Any]] = []
        self._operations = {
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

    def serve(self) -> None:
        """Answer requests until the evaluator lets go."""
        while True:
            request = frames.read_frame(PROTOCOL_DESCRIPTOR)
            if request is None:
                return
            reply = self._answer(request)
            if _getpid() != self._pid:
                # Pack code forked and came back twice: only the first one answers.
                return
            flush_output()
            frames.write_frame(PROTOCOL_DESCRIPTOR, reply)

    def _answer(self, request: bytes) -> bytes:
        message = plain_json.decode(request)
        try:
            value = self._operations[message["op"]](message)
        except NotJsonError as error:
            return _fault("malformed", error.type_name, error.detail)
        except BaseException as error:  # noqa: BLE001 - pack code may raise anything
            return _fault("error", type(error).__name__, describe_error(error))
        return b'{"value":' + value + b"}"

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

    def _reset(self, _message: dict[str, Any]) -> bytes:
        self._trace.clear()
        self._pack.reset(context_of(self._context, None))
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
        state = self._pack.get_state()
        content = plain_json.encode(state)
        if not isinstance(state, dict):
            raise NotJsonError(type(state).__name__, "the state is not a JSON object")
        return f'"sha256:{_sha256(content).hexdigest()}"'.encode()

    def _run_assertion(self, message: dict[str, Any]) -> bytes:
        verdict = assertions.judge(
            self._pack.assertions.get(message["name"]),
            state=self._pack.get_state(),
            trace=plain_json.decode(plain_json.encode(self._trace)),
            task=message["task"],
            context=context_of(self._context, None),
        )
        return plain_json.encode(verdict)

    def _close(self, _message: dict[str, Any]) -> bytes:
        return b"true"


def _fault(kind: str, type_name: str, detail: str) -> bytes:
    safe = {
        "kind": kind,
        "type": _clean(type_name),
        "detail": _clean(detail),
    }
    return b'{"fault":' + plain_json.encode(safe) + b"}"


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def flush_output() -> None:
    """Push out what pack code printed, so that a kill loses none of it."""
    for stream in (_stdout, _stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # Pack code closed it: then there is nothing more to keep.
            continue
