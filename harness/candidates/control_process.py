"""Control candidates as a subprocess with a captured log.

The process is started by this interpreter, is ready when its first line on stdout
says so, and is gone on every way out of the context: asked first, killed after a
bounded wait, always reaped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from harness.candidates.control_server import READY_KEY
from harness.errors import CandidateError
from harness.strict_json import StrictJsonError, decode_object

READY_TIMEOUT_S: Final = 60.0
"""For a cold interpreter that reads a large benchmark on a busy machine."""
STOP_TIMEOUT_S: Final = 5.0
READY_LINE_LIMIT_BYTES: Final = 64 * 1024
LOG_TAIL_CHARACTERS: Final = 2000
_ROOT: Final = Path(__file__).parent.parent.parent
_START: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from harness.candidates.control_server import main; raise SystemExit(main())"
)
"""Appends, so that nothing beside this package can hide a standard module."""


@dataclass(frozen=True, slots=True)
class ControlServer:
    """A running server of control candidates."""

    base_url: str
    """Ends in `/v1`."""
    pid: int
    log: Path


@asynccontextmanager
async def control_server(
    benchmark: Path,
    *,
    log: Path,
    seed: int = 0,
    port: int = 0,
    ready_timeout_s: float = READY_TIMEOUT_S,
    stop_timeout_s: float = STOP_TIMEOUT_S,
) -> AsyncIterator[ControlServer]:
    """Serve the controls of a benchmark for as long as the context lasts.

    What the process prints goes to `log`. Raises CandidateError
    (`eval_candidate_server_failed`) when it ends or is not ready in time.
    """
    command = [sys.executable, "-P", "-c", _START, str(_ROOT)]
    command += ["--benchmark", str(benchmark), "--port", str(port)]
    command += ["--seed", str(seed), "--parent", str(os.getpid())]
    async with await anyio.open_file(log, "wb") as stream:
        process = await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stderr=stream.wrapped,
            start_new_session=True,
        )
    try:
        base_url = await _ready_url(process, log, ready_timeout_s)
        yield ControlServer(base_url, process.pid, log)
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process, stop_timeout_s)


async def _ready_url(process: Process, log: Path, timeout_s: float) -> str:
    with anyio.move_on_after(timeout_s):
        url = await _read_url(process)
        if url is not None:
            return url
        await process.wait()
    ended = process.returncode
    text = await anyio.Path(log).read_text(encoding="utf-8", errors="replace")
    seen = "no line in time" if ended is None else f"exit status {ended}"
    raise CandidateError(
        "eval_candidate_server_failed",
        "the server of control candidates did not start",
        where=str(log),
        expected=f"a ready line within {timeout_s:g} s",
        actual=f"{seen}; {text.strip()[-LOG_TAIL_CHARACTERS:] or 'an empty log'}",
        recovery="read the log; it holds what the server printed",
    )


async def _read_url(process: Process) -> str | None:
    """Read the ready line; None where the process ends or prints anything else."""
    if process.stdout is None:
        return None
    reader = BufferedByteReceiveStream(process.stdout)
    try:
        line = await reader.receive_until(b"\n", READY_LINE_LIMIT_BYTES)
        return str(decode_object(line.decode("utf-8"))[READY_KEY])
    except (anyio.IncompleteRead, anyio.DelimiterNotFound):
        return None
    except (UnicodeDecodeError, StrictJsonError, KeyError):
        return None


async def _stop(process: Process, timeout_s: float) -> None:
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(timeout_s):
            await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()
