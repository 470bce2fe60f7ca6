"""A server is ready when it says so, watched while used, and always gone after."""

import os
import select
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

from harness.causes import exit_status
from harness.engines.server_process import (
    ServerCommand,
    ServerProcess,
    fill_placeholders,
    free_port,
    log_tail,
    require_free_port,
    resident_bytes,
)
from harness.errors import CandidateError, EngineError

ROOT = Path(__file__).parent.parent.parent
SCRIPT = Path(__file__).parent / "small_server.py"
GONE_S = 10


@pytest.fixture
def command(tmp_path):
    """Builds what starts the small server with some options."""

    def build(*options, **changes):
        port = free_port()
        words = (sys.executable, str(SCRIPT), str(port), "small", *options)
        wanted = ServerCommand(words, port, "/health", tmp_path / "log", 20, 5, {})
        return replace(wanted, **changes)

    return build


def _pids(log):
    """Every pid that the small server printed, by what it is."""
    lines = (line.split() for line in log.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2}


def _wait_gone(pid):
    """Wait until a process has ended; it need not be our child."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], GONE_S)[0])
    finally:
        os.close(handle)


def _used(command, work=None):
    async def used():
        async with ServerProcess(command) as server:
            return await (work or _ask)(server)

    return anyio.run(used)


async def _ask(server):
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{server.address}/health")).status_code


async def _nothing(_):
    return None


@pytest.mark.slow
def test_a_ready_server_answers_and_is_gone_afterwards(command):
    wanted = command()

    assert _used(wanted) == 200
    assert _wait_gone(_pids(wanted.log)["server"])


@pytest.mark.slow
def test_a_ready_server_knows_its_pid_its_memory_and_how_long_it_took(command):
    wanted = command()

    async def looked_at(server):
        return server.pid, server.memory_bytes(), server.ready_after_s

    pid, memory, seconds = _used(wanted, looked_at)

    assert pid == _pids(wanted.log)["server"]
    assert memory > 1_000_000
    assert 0 < seconds < 20


@pytest.mark.slow
def test_a_server_that_is_deaf_to_a_polite_end_is_killed(command):
    wanted = command("deaf", stop_timeout_s=0.1)

    _used(wanted, _nothing)

    assert _wait_gone(_pids(wanted.log)["server"])


@pytest.mark.slow
def test_what_the_server_daemonised_is_gone_too(command):
    wanted = command("daemon")

    _used(wanted, _nothing)

    assert _wait_gone(_pids(wanted.log)["daemon"])


@pytest.mark.slow
def test_an_error_of_the_work_stops_the_server_and_passes_unchanged(command):
    wanted = command()
    fault = CandidateError("eval_candidate_response_invalid", "as it came")

    async def failing(server):
        async def work():
            raise fault

        await server.while_running(work)

    with pytest.raises(CandidateError) as caught:
        _used(wanted, failing)

    assert caught.value is fault
    assert _wait_gone(_pids(wanted.log)["server"])


@pytest.mark.slow
def test_cancelled_work_stops_the_server(command):
    wanted = command()

    async def cancelled():
        with anyio.move_on_after(5) as scope:
            async with ServerProcess(wanted) as server:
                scope.cancel()
                await server.while_running(anyio.sleep_forever)

    anyio.run(cancelled)

    assert _wait_gone(_pids(wanted.log)["server"])


@pytest.mark.slow
def test_a_start_that_is_given_up_stops_the_server(command):
    server = ServerProcess(command("unwell", start_timeout_s=1.0))

    async def enter():
        async with server:
            pass

    with pytest.raises(EngineError, match=r"within start_timeout_s=1") as caught:
        anyio.run(enter)

    assert caught.value.code == "eval_engine_start_failed"
    assert _wait_gone(server.pid)


@pytest.mark.slow
def test_an_end_before_readiness_is_told_at_once_with_the_log(command):
    wanted = command("stillborn", start_timeout_s=3600)

    with pytest.raises(EngineError) as caught:
        _used(wanted)

    assert exit_status(caught.value.code) == 3
    assert "the server ended before it was ready" in str(caught.value)
    assert "exit status 3" in str(caught.value)
    assert "no weights here" in str(caught.value)


@pytest.mark.slow
def test_an_end_while_it_is_used_cancels_the_work(command):
    wanted = command()

    async def killed(server):
        async def work():
            os.kill(server.pid, signal.SIGKILL)
            await anyio.sleep_forever()

        await server.while_running(work)

    with pytest.raises(EngineError, match="killed by SIGKILL") as caught:
        _used(wanted, killed)

    assert caught.value.code == "eval_engine_failed"


@pytest.mark.slow
def test_work_that_ends_gives_its_result(command):
    async def working(server):
        async def work():
            return await _ask(server)

        return await server.while_running(work), server.is_running()

    assert _used(command(), working) == (200, True)


@pytest.mark.slow
def test_a_killed_evaluator_leaves_nothing_behind(command, tmp_path):
    wanted = command("daemon", "deaf", stop_timeout_s=0.1)
    program = (
        "import anyio, sys\n"
        "from pathlib import Path\n"
        "from harness.engines.server_process import ServerCommand, ServerProcess\n"
        "async def main():\n"
        f"    wanted = ServerCommand({wanted.command!r}, {wanted.port}, '/health',\n"
        f"        Path({str(wanted.log)!r}), 20, 0.1, {{}})\n"
        "    async with ServerProcess(wanted):\n"
        "        print('ready', flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE
    ) as evaluator:
        assert evaluator.stdout.readline() == b"ready\n"
        evaluator.kill()

    pids = _pids(wanted.log)
    assert _wait_gone(pids["server"])
    assert _wait_gone(pids["daemon"])


@pytest.mark.slow
def test_a_killed_keeper_takes_the_server_with_it(command):
    wanted = command()

    async def killed(server):
        async def work():
            os.kill(server._keeper.pid, signal.SIGKILL)
            await anyio.sleep_forever()

        await server.while_running(work)

    with pytest.raises(EngineError, match="its keeper is gone"):
        _used(wanted, killed)

    assert _wait_gone(_pids(wanted.log)["server"])


def test_a_command_that_does_not_exist_is_refused(command, tmp_path):
    wanted = command(command=(str(tmp_path / "absent"),))

    with pytest.raises(EngineError, match="cannot be started") as caught:
        _used(wanted)

    assert "No such file" in str(caught.value)


def test_a_taken_port_is_refused_before_anything_starts(command):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wanted = command(port=listener.getsockname()[1])

        with pytest.raises(EngineError, match="port of the server is taken"):
            _used(wanted)

    assert not wanted.log.exists()


@pytest.mark.slow
def test_the_log_is_appended_to(command):
    wanted = command()
    wanted.log.write_text("an earlier start\n")

    _used(wanted, _nothing)

    assert wanted.log.read_text().startswith("an earlier start\n")
    assert "server" in _pids(wanted.log)


@pytest.mark.slow
def test_the_server_gets_the_added_environment(command):
    wanted = command(
        command=(sys.executable, "-c", "import os; print(os.environ['GIVEN'])"),
        environment={"GIVEN": "as declared"},
    )

    with pytest.raises(EngineError, match="as declared"):
        _used(wanted)


def test_placeholders_are_filled_in_every_word():
    words = ["run", "--url=http://x:{port}/", "{model}", "{other}"]

    assert fill_placeholders(words, port=81, model="m") == (
        *("run", "--url=http://x:81/", "m", "{other}"),
    )


def test_a_free_port_is_free():
    require_free_port(free_port())


def test_log_tail_is_the_last_lines(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"\xff" + b"\n".join(b"line %d" % n for n in range(5000)))

    assert log_tail(log).splitlines() == [f"line {n}" for n in range(4980, 5000)]


@pytest.mark.parametrize(
    ("text", "said"), [(b"", "(an empty log)"), (None, "(the log cannot be read: ")]
)
def test_log_without_lines_says_so(tmp_path, text, said):
    log = tmp_path / "log"
    if text is not None:
        log.write_bytes(text)

    assert log_tail(log).startswith(said)


def test_resident_size_counts_a_process_and_what_is_below_it():
    assert resident_bytes(os.getpid()) > 10_000_000


def test_a_process_that_is_gone_has_no_resident_size():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    assert resident_bytes(process.pid) is None
