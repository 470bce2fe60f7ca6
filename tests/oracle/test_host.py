"""The host as a whole: starting, dying, starting again, leaving nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from harness.errors import OracleError
from harness.oracle.contracts import OracleFault, PackCode, WorkerDeadlines
from harness.oracle.host import MAX_DEATHS
from harness.oracle.probe import probe
from tests.oracle.zoo import BACKEND, DEADLINES, FOREVER, TASK, python, write_pack

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def _start(zoo, pack, **options):
    async def main():
        async with zoo.host(pack, **options):
            pass

    anyio.run(main)


@pytest.mark.parametrize(
    ("backend", "kind", "words"),
    [
        ("raise ImportError('no such table')", "error", "no such table"),
        ("def broken(:", "error", "SyntaxError"),
        ("import sys; sys.exit(0)", "error", "SystemExit"),
        ("def list_tools(): return []", "error", "no function reset"),
        ("import os; os._exit(0)", "crashed", "ended before it was ready"),
        (FOREVER, "timeout", "not ready in 0.4 s"),
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
            + BACKEND,
            "error",
            "start it in a call that needs it",
        ),
    ],
    ids=["raises", "syntax", "exits", "incomplete", "ends", "hangs", "threads"],
)
def test_pack_that_cannot_be_imported_is_an_import_fault(zoo, backend, kind, words):
    hasty = WorkerDeadlines(import_s=0.4)
    pack = write_pack(zoo.folder, backend=backend)

    with pytest.raises(OracleFault) as caught:
        _start(zoo, pack, deadlines=hasty if kind == "timeout" else DEADLINES)

    assert (caught.value.operation, caught.value.kind) == ("import", kind)
    assert words in caught.value.detail


@pytest.mark.parametrize(
    ("backend", "kind"), [("raise ValueError", "error"), (FOREVER, "timeout")]
)
def test_import_in_the_worker_has_the_same_faults(zoo, backend, kind):
    pack = write_pack(zoo.folder, backend=backend)
    hasty = WorkerDeadlines(import_s=0.4)

    async def scenario(session):
        raise AssertionError("the session must not open")

    with pytest.raises(OracleFault) as caught:
        zoo.session(
            scenario,
            pack=pack,
            mode="per_task",
            deadlines=hasty if kind == "timeout" else DEADLINES,
        )

    assert (caught.value.operation, caught.value.kind) == ("import", kind)


def test_endpoint_pack_is_refused_by_name(zoo, tmp_path):
    pack = write_pack(zoo.folder)
    endpoint = PackCode(pack.root, None, tmp_path / "e.yaml", pack.assertions, None)

    with pytest.raises(OracleError, match="HTTP endpoint"):
        _start(zoo, endpoint)


def test_death_of_the_host_is_a_session_fault_and_the_next_session_starts_it_again(zoo):
    pack = write_pack(zoo.folder)

    async def main():
        async with zoo.host(pack) as host:
            end = anyio.current_time() + 30
            victim = await host.open_session(TASK, deadline=end)
            bystander = await host.open_session(TASK, deadline=end)
            for session in (victim, bystander):
                await session.reset()
            kinds = []
            for session, code in (
                (victim, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)"),
                (bystander, "result = {}"),
            ):
                with pytest.raises(OracleFault) as caught:
                    await python(session, code)
                kinds.append(caught.value.kind)
            fresh = await host.open_session(TASK, deadline=end)
            await fresh.reset()
            return kinds, await python(fresh, "result = {'n': 1}"), host.starts

    assert anyio.run(main) == (["session", "session"], {"n": 1}, 2)


def test_host_that_keeps_dying_is_given_up(zoo):
    pack = write_pack(zoo.folder)

    async def main():
        async with zoo.host(pack) as host:
            details = []
            for _ in range(MAX_DEATHS + 1):
                end = anyio.current_time() + 30
                try:
                    session = await host.open_session(TASK, deadline=end)
                    await session.reset()
                    await python(
                        session, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)"
                    )
                except OracleFault as fault:
                    details.append((fault.operation, fault.kind))
            return details, host.starts

    details, starts = anyio.run(main)
    assert details == [("call", "session")] * MAX_DEATHS + [("import", "session")]
    assert starts == MAX_DEATHS


def test_host_that_dies_now_and_then_serves_on(zoo):
    pack = write_pack(zoo.folder)

    async def main():
        async with zoo.host(pack) as host:
            for _ in range(MAX_DEATHS + 1):
                end = anyio.current_time() + 30
                lost = await host.open_session(TASK, deadline=end)
                await lost.reset()
                with pytest.raises(OracleFault):
                    await python(
                        lost, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)"
                    )
                served = await host.open_session(TASK, deadline=end)
                await served.reset()
                await served.close()
            return host.starts

    assert anyio.run(main) == MAX_DEATHS + 2


def test_host_that_does_not_answer_its_door_is_replaced(zoo):
    pack = write_pack(zoo.folder)
    hasty = WorkerDeadlines(import_s=0.5)

    async def main():
        async with zoo.host(pack, deadlines=hasty) as host:
            end = anyio.current_time() + 30
            session = await host.open_session(TASK, deadline=end)
            await python(session, "os.kill(os.getppid(), signal.SIGSTOP)")
            with pytest.raises(OracleFault) as caught:
                await host.open_session(TASK, deadline=end)
            fresh = await host.open_session(TASK, deadline=end)
            await fresh.reset()
            return caught.value.kind, host.starts

    assert anyio.run(main) == ("timeout", 2)


def test_keeper_that_is_killed_leaves_nothing(zoo):
    pack = write_pack(zoo.folder)

    async def main():
        async with zoo.host(pack) as host:
            session = await host.open_session(TASK, deadline=anyio.current_time() + 30)
            await python(
                session,
                "if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)",
            )
            os.kill(host.keeper_pid, signal.SIGKILL)
            with pytest.raises(OracleFault) as caught:
                await python(session, "time.sleep(5)")
            return caught.value.kind

    # The zoo fixture finds whatever is left.
    assert anyio.run(main) == "session"


def test_evaluator_that_is_killed_takes_everything_along(zoo):
    pack = write_pack(zoo.folder)
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
import anyio
from harness.oracle.contracts import PackCode, SessionContext
from harness.oracle.host import OracleHost
root = Path({str(pack.root)!r})
pack = PackCode(root, root / "backend.py", None, root / "assertions.py", None)
async def main():
    scratch = Path({str(zoo.scratch)!r})
    async with OracleHost(pack, level="process", scratch=scratch) as host:
        context = SessionContext("t", 1, "2025-01-01T00:00:00Z")
        end = anyio.current_time() + 60
        session = await host.open_session(context, deadline=end)
        code = "if os.fork() == 0:\\n    os.setsid()\\n    time.sleep(600)"
        await session.call_tool("python", {{"code": code}}, turn_index=0)
        print(host.keeper_pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, check=False
    )
    keeper = int(finished.stdout)

    async def keeper_is_gone():
        try:
            handle = os.pidfd_open(keeper)
        except ProcessLookupError:
            return
        with anyio.fail_after(10):
            await anyio.wait_readable(handle)
        os.close(handle)

    anyio.run(keeper_is_gone)
    assert finished.returncode == -signal.SIGKILL
    assert zoo.left_processes() == []
    (root,) = zoo.scratch.iterdir()
    assert list(root.iterdir()) == []
    root.rmdir()


def test_host_does_not_import_the_callers_main(zoo):
    pack = write_pack(zoo.folder)
    script = zoo.folder / "script.py"
    script.write_text(
        f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
with open({str(zoo.folder / "runs")!r}, "a") as stream:
    stream.write("run\\n")
from pathlib import Path
import anyio
from harness.oracle.contracts import PackCode
from harness.oracle.host import OracleHost
root = Path({str(pack.root)!r})
pack = PackCode(root, root / "backend.py", None, root / "assertions.py", None)
async def main():
    async with OracleHost(pack, level="process", scratch=Path({str(zoo.scratch)!r})):
        print(sys.modules["__main__"].__file__)
anyio.run(main)
"""
    )
    finished = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True
    )

    assert (zoo.folder / "runs").read_text() == "run\n"
    assert finished.stdout.strip() == str(script)


def test_no_helper_process_inherits_the_evaluators_environment(zoo):
    pack = write_pack(zoo.folder)
    program = f"""
import os
from pathlib import Path
import anyio
from harness.oracle.contracts import PackCode
from harness.oracle.host import OracleHost
from oracle_workers.processes import children
root = Path({str(pack.root)!r})
pack = PackCode(root, root / "backend.py", None, root / "assertions.py", None)
async def main():
    async with OracleHost(pack, level="process", scratch=Path({str(zoo.scratch)!r})):
        for child in children(os.getpid()):
            print(Path(f"/proc/{{child}}/environ").read_bytes())
anyio.run(main)
"""
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "CANDIDATE_KEY": "planted-secret"},
    )

    # The keeper, and the process library's own resource tracker.
    assert len(finished.stdout.splitlines()) == 2
    assert "PYTHONHASHSEED=0" in finished.stdout
    assert "planted" not in finished.stdout


def test_daemon_of_a_crashed_worker_is_ended_by_the_host(zoo):
    pack = write_pack(zoo.folder)
    report = zoo.folder / "pid"
    code = f"""
if os.fork() == 0:
    os.setsid()
    with open({str(report)!r}, "w") as stream:
        stream.write(str(os.getpid()))
    time.sleep(600)
while not (os.path.exists({str(report)!r}) and os.path.getsize({str(report)!r})):
    time.sleep(0.001)
os._exit(1)
"""

    async def main():
        async with zoo.host(pack) as host:
            session = await host.open_session(TASK, deadline=anyio.current_time() + 30)
            with pytest.raises(OracleFault):
                await python(session, code)
            try:
                handle = os.pidfd_open(int(report.read_text()))
            except ProcessLookupError:
                return
            with anyio.fail_after(10):
                await anyio.wait_readable(handle)
            os.close(handle)

    anyio.run(main)


def test_hash_seed_is_fixed(zoo):
    code = "result = {'hash': hash('fairtrial')}"
    plain = subprocess.run(
        [sys.executable, "-c", "print(hash('fairtrial'))"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "0"},
    )

    assert zoo.python(code) == {"hash": int(plain.stdout)}


def test_probe_lists_tools_and_assertions(zoo):
    report = anyio.run(probe, write_pack(zoo.folder))

    assert report.importable
    assert report.tools == ("python", "leak")
    assert report.assertions == ("assert_nothing",)


def test_probe_of_a_broken_pack_is_a_report(zoo):
    report = anyio.run(probe, write_pack(zoo.folder, backend="raise OSError('x')"))

    assert not report.importable
    assert "OSError: x" in report.detail


def test_closed_host_opens_no_session(zoo):
    pack = write_pack(zoo.folder)

    async def main():
        host = zoo.host(pack)
        async with host:
            pass
        with pytest.raises(OracleFault) as caught:
            await host.open_session(TASK, deadline=anyio.current_time() + 5)
        return caught.value.kind

    assert anyio.run(main) == "session"


def test_hostile_leftovers_in_the_folder_are_removed(zoo):
    code = """
deep = "."
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
os.chdir(os.environ["HOME"])
os.symlink("/etc", "link")
os.mkdir("closed"); open("closed/f", "w").close(); os.chmod("closed", 0)
"""
    assert zoo.python(code) == {}
