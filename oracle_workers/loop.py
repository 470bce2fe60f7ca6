"""The request loop that every kind of worker runs, and the form of its replies.

One framed JSON request at a time on the protocol descriptor. A reply holds either
`value` or `fault` (`error`: the operation failed; `malformed`: what it gave has no
JSON form; `unsent` where nothing can have happened yet). The loop ends when the
evaluator lets go of the socket or kills the worker.

`each` brings several requests, answered one by one until the first fault. The second
one begins before `until` on the machine's clock or not at all: then the answer to the
first says `stopped`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from oracle_workers import frames, plain_json
from oracle_workers.contain import PROTOCOL_DESCRIPTOR
from oracle_workers.light_hash import sha256
from oracle_workers.own_builtins import OWN_BUILTINS
from oracle_workers.plain_json import NotJsonError
from oracle_workers.python_backend import describe_error

globals()["__builtins__"] = OWN_BUILTINS

Operation = Callable[[Any, dict[str, Any]], bytes]
"""From a session and a request to the canonical JSON of its value."""

_BORN = b'{"value":"born"}'
_FAULT = b'{"fault":'

_exit = os._exit
_getpid = os.getpid
_monotonic = time.monotonic
_sha256 = sha256
_stdout = sys.stdout
_stderr = sys.stderr


class NotServedError(Exception):
    """An operation failed, in plain words; `unsent` where nothing left this process."""

    def __init__(self, detail: str, *, unsent: bool = False) -> None:
        self.detail = detail
        self.unsent = unsent
        super().__init__(detail)


def serve(
    session: Any,
    operations: Mapping[str, Operation],
    leave: Callable[[], None] | None = None,
) -> NoReturn:
    """Answer requests until the evaluator lets go, call `leave`, and end."""
    status = 0
    try:
        frames.write_frame(PROTOCOL_DESCRIPTOR, _BORN)
        answer_all(session, operations, PROTOCOL_DESCRIPTOR, PROTOCOL_DESCRIPTOR)
    except (OSError, frames.FrameError):
        # The evaluator is gone, or pack code closed or spoiled the protocol: either
        # way there is nobody left to answer.
        status = 71
    if leave is not None:
        leave()
    _exit(status)


def answer_all(
    session: Any, operations: Mapping[str, Operation], asked: int, answered: int
) -> None:
    """Answer every request that comes on one descriptor on the other."""
    pid = _getpid()
    read = frames.FrameReader(asked).read
    while (request := read()) is not None:
        message = plain_json.decode_canonical(request)
        until = message.get("until")
        for part in message.get("each", (message,)):
            reply = _answer(session, operations, part)
            if _getpid() != pid:
                # Pack code forked and came back twice: only the first one answers.
                return
            flush_output()
            is_last = reply.startswith(_FAULT)
            if until is not None and not is_last and _monotonic() >= until:
                reply = frames.STOPPED + reply[1:]
                is_last = True
            frames.write_frame(answered, reply)
            if is_last:
                break
            until = None


def _answer(
    session: Any, operations: Mapping[str, Operation], message: dict[str, Any]
) -> bytes:
    try:
        value = operations[message["op"]](session, message)
    except NotJsonError as error:
        return _fault("malformed", error.type_name, error.detail)
    except NotServedError as error:
        return _fault("error", "", error.detail, unsent=error.unsent)
    except BaseException as error:  # noqa: BLE001 - pack code may raise anything
        return _fault("error", type(error).__name__, describe_error(error))
    return b'{"value":' + value + b"}"


def state_hash(state: Any) -> bytes:
    """Return the content hash of a state as a JSON text; raise NotJsonError."""
    content = plain_json.encode(state)
    if not isinstance(state, dict):
        raise NotJsonError(type(state).__name__, "the state is not a JSON object")
    return f'"sha256:{_sha256(content).hexdigest()}"'.encode()


def _fault(kind: str, type_name: str, detail: str, *, unsent: bool = False) -> bytes:
    safe: dict[str, Any] = {
        "kind": kind,
        "type": _clean(type_name),
        "detail": _clean(detail),
    }
    if unsent:
        safe["unsent"] = True
    return _FAULT + plain_json.encode(safe) + b"}"


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
