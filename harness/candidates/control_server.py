"""The control candidates behind an OpenAI-compatible endpoint, in a process of its own.

`GET /healthz`, `GET /v1/models`, `POST /v1/chat/completions`, on loopback only. When
it listens it prints one JSON line with its URL; after that stdout stays silent. It
stops on SIGTERM, on SIGINT, and when the process that started it is gone, so that no
server outlives the run that it was started for.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskStatus

from harness.candidates.control import ControlCandidate, Response, refusal
from harness.candidates.control_policies import CONTROL_NAMES
from harness.candidates.loopback_http import (
    LOOPBACK,
    Request,
    listen,
    port_of,
    serve,
)
from harness.canonical import Json
from harness.causes import exit_status
from harness.errors import FairtrialError, SourceError, UsageError
from harness.strict_json import DOCUMENT_DEPTH, StrictJsonError, decode_object

CHAT_PATH: Final = "/v1/chat/completions"
MODELS_PATH: Final = "/v1/models"
HEALTH_PATH: Final = "/healthz"
READY_KEY: Final = "url"
"""The key of the ready line that holds the base URL for `--base-url`."""
_SET_DEATH_SIGNAL: Final = 1


def answer(controls: ControlCandidate, request: Request) -> Response:
    """Route one request."""
    methods = {CHAT_PATH: "POST", MODELS_PATH: "GET", HEALTH_PATH: "GET"}
    method = methods.get(request.path)
    if method is None:
        return refusal(404, f"no such path; there are {', '.join(methods)}")
    if request.method != method:
        return refusal(405, f"{request.path} takes {method}")
    if request.path == HEALTH_PATH:
        return Response(200, {"status": "ok", "tasks": len(controls.tasks)})
    if request.path == MODELS_PATH:
        return Response(200, controls.models)
    return _chat(controls, request.body)


def _chat(controls: ControlCandidate, data: bytes) -> Response:
    try:
        body = decode_object(data.decode("utf-8"), max_depth=DOCUMENT_DEPTH)
    except (StrictJsonError, UnicodeDecodeError) as error:
        return refusal(400, f"the body is not one strict JSON object: {error}")
    model = body.get("model")
    if not isinstance(model, str):
        return refusal(400, "expected the name of a control", param="model")
    for key, plain in (("stream", False), ("n", 1)):
        if body.get(key) not in (None, plain):
            return refusal(400, f"only {key}={json.dumps(plain)} is served", param=key)
    return controls.respond(model, body)


def load_controls(benchmark: Path, *, seed: int) -> ControlCandidate:
    """Read a published benchmark; raise SourceError where there is none."""
    from harness.benchmark.commit_marker import MANIFEST_FILE, PUBLISHED_FILE
    from harness.benchmark.publication import read_rows

    table = benchmark / PUBLISHED_FILE
    missing = [p.name for p in (benchmark / MANIFEST_FILE, table) if not p.is_file()]
    if missing:
        raise SourceError(
            "eval_source_invalid",
            "the folder holds no finished publication",
            where=str(benchmark),
            expected=f"{MANIFEST_FILE} beside {PUBLISHED_FILE}",
            actual=f"no {' and no '.join(missing)}",
            recovery="name the folder that `fairtrial publish` has written",
        )
    return ControlCandidate(read_rows(table), seed=seed)


async def serve_controls(controls: ControlCandidate, *, port: int, parent: int) -> None:
    """Serve until a signal or the end of process `parent`, which started this one.

    `parent` is `os.getppid()` as read before the benchmark was loaded. Raises
    UsageError for a port that cannot be had.
    """
    try:
        listener = await listen(port)
    except OSError as error:
        raise UsageError(
            "eval_cli_invalid",
            "the port cannot be listened on",
            where=f"{LOOPBACK}:{port}",
            expected="a free port, or 0 to take any free one",
            actual=error.strerror or str(error),
            recovery="choose another --port",
        ) from None
    async with listener, anyio.create_task_group() as group:
        await group.start(_stop_on_signal, group.cancel_scope)
        group.start_soon(_stop_with_parent, group.cancel_scope, parent)
        group.start_soon(serve, listener, lambda r: answer(controls, r))
        ready: dict[str, Json] = {
            READY_KEY: f"http://{LOOPBACK}:{port_of(listener)}/v1",
            "controls": list(CONTROL_NAMES),
            "tasks": len(controls.tasks),
            "seed": controls.seed,
            "pid": os.getpid(),
        }
        print(json.dumps(ready), flush=True)  # noqa: T201 (the ready line)


async def _stop_on_signal(
    scope: anyio.CancelScope, *, task_status: TaskStatus[None]
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()
            return


async def _stop_with_parent(scope: anyio.CancelScope, parent: int) -> None:
    """Wait for the end of the parent.

    A descriptor of the parent becomes readable when it ends. Kernels or sandboxes
    without such descriptors send a signal at the parent's death instead.
    """
    if parent <= 0:
        return
    try:
        descriptor = os.pidfd_open(parent)
    except ProcessLookupError:
        scope.cancel()
        return
    except OSError:
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, int(signal.SIGTERM))
        if os.getppid() != parent:
            scope.cancel()
        return
    try:
        if os.getppid() == parent:
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    scope.cancel()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the controls as a process of their own; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parent", type=int, default=os.getppid())
    arguments = parser.parse_args(argv)
    try:
        controls = load_controls(arguments.benchmark, seed=arguments.seed)
        anyio.run(
            lambda: serve_controls(
                controls, port=arguments.port, parent=arguments.parent
            )
        )
    except FairtrialError as error:
        print(error, file=sys.stderr)  # noqa: T201 (the log of the process)
        return exit_status(error.code)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
