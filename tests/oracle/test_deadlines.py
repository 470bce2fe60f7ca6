"""Deadlines: who is charged, how fast everything dies, and who does not notice."""

import os
import subprocess
import sys
import time

import anyio
import pytest

from harness.oracle.contracts import OracleFault, WorkerDeadlines
from tests.oracle.zoo import DEADLINES, FOREVER, HASTY, TASK, python, write_pack

pytestmark = pytest.mark.slow

DAEMON = """
import os, sys, time
report, target, delay = {report!r}, {target!r}, {delay}
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(report + ".part", "w") as stream:
            stream.write(str(os.getpid()))
        os.rename(report + ".part", report)
        time.sleep(delay)
        with open(target, "w") as stream:
            stream.write("late")
        os._exit(0)
    os._exit(0)
while not os.path.exists(report):
    time.sleep(0.001)
"""


def _is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    "code",
    [
        FOREVER,
        "time.sleep(600)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n" + FOREVER,
        "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 15)]\ntime.sleep(600)",
        "os.kill(os.getpid(), signal.SIGSTOP)\n" + FOREVER,
        "import ctypes; ctypes.PyDLL(None).sleep(600)",
    ],
    ids=["loop", "sleep", "signals blocked", "ignored", "stopped", "holds the GIL"],
)
def test_call_that_never_returns_is_killed_at_its_deadline(zoo, level, code):
    started = time.monotonic()
    fault = zoo.fault(code, level=level, deadlines=HASTY)
    took = time.monotonic() - started

    assert (fault.operation, fault.kind) == ("call", "timeout")
    assert "deadline of the operation" in fault.detail
    # Start of the host and of the worker, 0.3 s for the call, and the kill.
    assert took < 5


def test_kill_follows_the_deadline_at_once(zoo):
    async def scenario(session):
        await session.reset()
        started = anyio.current_time()
        with pytest.raises(OracleFault):
            await python(session, FOREVER)
        return anyio.current_time() - started - HASTY.call_s, session.pid

    late_s, pid = zoo.session(scenario, deadlines=HASTY)

    assert late_s < 0.25
    assert _is_gone(pid)


def test_daemon_of_a_killed_worker_dies_with_it(zoo, tmp_path):
    target, report = tmp_path / "late", tmp_path / "pid"
    proof = DAEMON.format(report=str(report), target=str(target), delay=0.2)
    subprocess.run([sys.executable, "-c", proof], check=True)
    daemon = int(report.read_text())
    handle = os.pidfd_open(daemon)
    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(anyio.wait_readable, handle)
    os.close(handle)
    # Unhindered, such a daemon outlives its parents and writes its file.
    assert target.read_text() == "late"

    target.unlink()
    report.unlink()
    code = DAEMON.format(report=str(report), target=str(target), delay=30) + FOREVER
    fault = zoo.fault(code, deadlines=HASTY)

    assert fault.kind == "timeout"
    assert _is_gone(int(report.read_text()))
    assert zoo.evidence["ended"]["processes_killed"] == 1
    assert not target.exists()


FOREST = """
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        while True:
            time.sleep(60)
"""


@pytest.mark.parametrize("end", [FOREVER, "os._exit(1)", "raise ValueError", ""])
def test_daemon_leaves_no_process(zoo, level, end):
    async def scenario(session):
        await session.reset()
        try:
            await python(session, FOREST + end)
        except OracleFault:
            return True
        return False

    # The zoo looks for what is left, by working folder and by parent.
    assert zoo.session(scenario, level=level, deadlines=HASTY) is bool(end)


def test_fork_bomb_is_put_out(zoo):
    bomb = "for _ in range(6): os.fork()\n" + FOREVER

    assert zoo.fault(bomb, deadlines=HASTY).kind == "timeout"


@pytest.mark.parametrize(
    ("operation", "backend", "assertion"),
    [
        ("reset", "def reset(*, ctx, fixtures=None):\n    while True: pass", ""),
        ("state", "def get_state():\n    while True: pass", ""),
        (
            "assertion",
            "",
            "def assert_nothing(*, state, trace, task, ctx):\n    while True: pass",
        ),
    ],
)
def test_each_operation_has_its_own_deadline(zoo, operation, backend, assertion):
    plain = (
        "def list_tools(): return []\n"
        "def reset(*, ctx, fixtures=None): pass\n"
        "def call_tool(name, arguments, *, ctx): return {}\n"
        "def get_state(): return {}\n"
    )
    pack = write_pack(
        zoo.folder,
        backend=plain + backend,
        assertions=assertion or "ASSERTIONS = {}",
    )
    hasty = WorkerDeadlines(**{f"{operation}_s": 0.2})

    async def scenario(session):
        await session.reset()
        await session.call_tool("t", {}, turn_index=0)
        if operation == "state":
            await session.state_hash()
        await session.run_assertion("assert_nothing", {})

    with pytest.raises(OracleFault) as caught:
        zoo.session(scenario, pack=pack, deadlines=hasty)

    assert (caught.value.operation, caught.value.kind) == (operation, "timeout")


def test_episode_deadline_is_nearer_than_the_operations(zoo):
    fault = zoo.fault(FOREVER, episode_s=0.5)

    assert fault.kind == "timeout"
    assert "deadline of the episode" in fault.detail


def test_nothing_is_sent_when_the_episode_is_over(zoo):
    async def scenario(session):
        await session.reset()
        await anyio.sleep_until(session.deadline)
        with pytest.raises(OracleFault) as caught:
            await python(session, "os._exit(1)")
        return caught.value

    fault = zoo.session(scenario, episode_s=0.3)

    assert (fault.kind, fault.sent) == ("timeout", False)
    assert zoo.evidence["ended"]["kind"] == "timeout"


def test_session_at_its_episodes_deadline_closes_without_a_fault(zoo):
    async def scenario(session):
        await session.reset()
        await anyio.sleep_until(session.deadline)

    zoo.session(scenario, episode_s=0.3)

    assert zoo.evidence["ended"]["how"] == "closed at the episode's deadline"


def test_other_sessions_and_the_loop_do_not_notice_a_hanging_one(zoo):
    pack = write_pack(zoo.folder)
    lags = []

    async def watch():
        while True:
            before = anyio.current_time()
            await anyio.sleep(0.005)
            lags.append(anyio.current_time() - before - 0.005)

    async def hang(host, faults):
        session = await host.open_session(TASK, deadline=anyio.current_time() + 1)
        await session.reset()
        try:
            await python(session, FOREVER)
        except OracleFault as fault:
            faults.append(fault.kind)

    async def work(host, done):
        session = await host.open_session(TASK, deadline=anyio.current_time() + 20)
        await session.reset()
        await python(session, "result = {}")
        await session.close()
        done.append(anyio.current_time())

    async def main():
        faults, done = [], []
        async with zoo.host(pack, deadlines=DEADLINES) as host:
            started = anyio.current_time()
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(hang, host, faults)
                    for _ in range(7):
                        tasks.start_soon(work, host, done)
                group.cancel_scope.cancel()
        return faults, [moment - started for moment in done]

    faults, done = anyio.run(main)

    assert faults == ["timeout"]
    assert len(done) == 7
    assert max(done) < 0.9
    assert sorted(lags)[int(len(lags) * 0.9)] < 0.1


def test_worker_that_uses_up_its_processor_time_is_ended(zoo):
    fault = zoo.fault(FOREVER, cpu_s=1)

    assert fault.kind == "crashed"
    assert "signal 24" in fault.detail
