"""A server that fairtrial starts, watches and stops; its output is kept in a log.

The server runs below a keeper process and is gone on every way out, also when this
process is killed. It counts as ready when its health address answers 200. Until then
and while work is done with it, its end is noticed at once and reported with the last
lines of its log.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, NoReturn, Self, TypeVar

import anyio
import httpx
from anyio.abc import Process

from harness.candidates.transport import HttpTransport
from harness.canonical import Json
from harness.engines import server_keeper
from harness.errors import EngineError, FairtrialError
from oracle_workers import processes

_T = TypeVar("_T")

LOOPBACK: Final = "127.0.0.1"
HEALTH_PERIOD_S: Final = 0.2
"""Between two questions whether the server is ready."""
HEALTH_DEADLINE_S: Final = 5.0
"""For one answer to that question."""
KEEPER_DEADLINE_S: Final = 10.0
"""For the keeper to start, and to be gone beyond the server's own time to stop."""
LOG_TAIL_LINES: Final = 20
LOG_TAIL_BYTES: Final = 8192
_ROOT: Final = Path(__file__).parent.parent.parent
_START: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from harness.engines.server_keeper import main; main(sys.argv[1:])"
)
"""Appends, so that nothing beside this package can hide a standard module."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """What to start and how to know that it is ready."""

    command: tuple[str, ...]
    """The whole command line; `{port}` stands already replaced."""
    port: int
    health_path: str
    log: Path
    """Appended to; whatever the server prints is in it."""
    start_timeout_s: float
    stop_timeout_s: float
    environment: Mapping[str, str]
    """Added to this process's own."""
    folder: Path = Path()
    """Where the server runs: relative names in its command start here."""


class ServerProcess:
    """A context manager that holds a ready server."""

    def __init__(self, command: ServerCommand) -> None:
        self._command = command
        self._keeper: Process | None = None
        self._reports = b""
        self.pid = 0
        """Of the server itself, the leader of its own session."""
        self.ready_after_s = 0.0
        """Wall time from its start to the first answer of its health address."""

    @property
    def address(self) -> str:
        """Scheme, host and port, without a path."""
        return f"http://{LOOPBACK}:{self._command.port}"

    async def __aenter__(self) -> Self:
        require_free_port(self._command.port)
        started = time.monotonic()
        try:
            await self._start_keeper()
            await self._until_ready()
        except BaseException:
            await self._stop()
            raise
        self.ready_after_s = time.monotonic() - started
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    async def while_running(
        self,
        work: Callable[[], Awaitable[_T]],
        beside: Callable[[], Coroutine[object, object, None]] | None = None,
    ) -> _T:
        """Do the work, and `beside` it as long as it lasts.

        Raises EngineError (`eval_engine_failed`) if the server ends meanwhile.
        """
        return await self._guarded(
            work, "eval_engine_failed", "while it was used", beside
        )

    def is_running(self) -> bool:
        """Tell whether the server has not ended."""
        return processes.is_running(self.pid)

    def memory_bytes(self) -> int | None:
        """Return the resident size of the server and all below it now."""
        return resident_bytes(self.pid)

    async def _start_keeper(self) -> None:
        command = self._command
        self._keeper = await anyio.open_process(
            [
                *(sys.executable, "-P", "-c", _START, str(_ROOT)),
                str(command.stop_timeout_s),
                str(command.log.resolve()),
                *command.command,
            ],
            cwd=command.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            env={**os.environ, **command.environment},
            start_new_session=True,
        )
        report: Mapping[str, Json] = {}
        with anyio.move_on_after(KEEPER_DEADLINE_S):
            report = await self._next_report()
        if server_keeper.STARTED not in report:
            reason = report.get(server_keeper.FAILED, "nothing was reported in time")
            raise EngineError(
                "eval_engine_start_failed",
                "the command of the server cannot be started",
                where=" ".join(command.command),
                actual=str(reason),
                recovery="correct the command, or install what it names",
            )
        self.pid = int(report[server_keeper.STARTED])

    async def _until_ready(self) -> None:
        timeout_s = self._command.start_timeout_s
        ready = False
        with anyio.move_on_after(timeout_s):
            ready = await self._guarded(
                self._poll_health, "eval_engine_start_failed", "before it was ready"
            )
        if not ready:
            self._fail(
                "eval_engine_start_failed",
                f"the server was not ready within start_timeout_s={timeout_s:g}",
                "it is running and does not answer",
            )

    async def _poll_health(self) -> bool:
        url = self.address + self._command.health_path
        async with HttpTransport() as transport:
            while not await _is_healthy(transport, url):  # noqa: ASYNC110 (a process)
                await anyio.sleep(HEALTH_PERIOD_S)
        return True

    async def _guarded(
        self,
        work: Callable[[], Awaitable[_T]],
        code: str,
        when: str,
        beside: Callable[[], Coroutine[object, object, None]] | None = None,
    ) -> _T:
        """Do the work while the server runs; its end cancels the work."""
        ended: list[Json] = []
        results: list[_T] = []
        failures: list[FairtrialError] = []

        async with anyio.create_task_group() as group:

            async def watch() -> None:
                report = await self._next_report()
                ended.append(report.get(server_keeper.ENDED))
                group.cancel_scope.cancel()

            group.start_soon(watch)
            if beside is not None:
                group.start_soon(beside)
            try:
                results.append(await work())
            except FairtrialError as error:
                # Raised below: a group would wrap it.
                failures.append(error)
            group.cancel_scope.cancel()
        if results:
            return results[0]
        if ended:
            self._fail(code, f"the server ended {when}", _status_words(ended[0]))
        raise failures[0]

    async def _next_report(self) -> Mapping[str, Json]:
        """Return the keeper's next line; its end without one reads as an empty one."""
        keeper = self._keeper
        if keeper is None or keeper.stdout is None:
            return {}
        while b"\n" not in self._reports:
            try:
                self._reports += await keeper.stdout.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return {}
        line, _, self._reports = self._reports.partition(b"\n")
        report: Mapping[str, Json] = json.loads(line)
        return report

    async def _stop(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        with anyio.CancelScope(shield=True):
            if keeper.stdin is not None:
                await keeper.stdin.aclose()
            with anyio.move_on_after(self._command.stop_timeout_s + KEEPER_DEADLINE_S):
                await keeper.wait()
            if keeper.returncode != 0 and self.pid:
                # The keeper was killed or hangs, so its work is done from here.
                with suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
            if keeper.returncode is None:
                keeper.kill()
            await keeper.aclose()

    def _fail(self, code: str, problem: str, actual: str) -> NoReturn:
        command = self._command
        raise EngineError(
            code,
            problem,
            where=command.log.name,
            expected=f"200 from {self.address}{command.health_path}",
            actual=f"{actual}; the end of its log:\n{log_tail(command.log)}",
            recovery="read the log; it holds all that the server printed",
        )


async def _is_healthy(transport: HttpTransport, url: str) -> bool:
    with anyio.move_on_after(HEALTH_DEADLINE_S), suppress(httpx.TransportError):
        response = await transport.handle_async_request(httpx.Request("GET", url))
        return response.status_code == 200
    return False


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def require_free_port(port: int) -> None:
    """Raise EngineError where the port is taken: another server would answer."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        raise EngineError(
            "eval_engine_start_failed",
            "the port of the server is taken",
            where=f"{LOOPBACK}:{port}",
            expected="a free port, so that nobody else answers for the server",
            actual=error.strerror or str(error),
            recovery="choose another port, or null to take any free one",
        ) from None


def fill_placeholders(
    command: Sequence[str], *, port: int, model: str
) -> tuple[str, ...]:
    """Return a command with `{port}` and `{model}` replaced in every word."""
    return tuple(
        word.replace("{port}", str(port)).replace("{model}", model) for word in command
    )


def log_tail(log: Path) -> str:
    """Return the last lines of a log, or what there is to say of it."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError as error:
        return f"(the log cannot be read: {error.strerror})"
    return "\n".join(text.splitlines()[-LOG_TAIL_LINES:]) or "(an empty log)"


def resident_bytes(root: int) -> int | None:
    """Return the resident size of a process and all below it; None if it is gone."""
    pages = 0
    pending = [root]
    while pending:
        pid = pending.pop()
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        except (OSError, IndexError):
            continue
        pending += processes.children(pid)
    return pages * os.sysconf("SC_PAGE_SIZE") or None


def _status_words(status: Json) -> str:
    if not isinstance(status, int):
        return "its keeper is gone"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
