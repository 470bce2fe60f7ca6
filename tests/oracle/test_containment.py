"""What pack code cannot see, reach or keep, level by level."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from harness.canonical import canonical_json
from oracle_workers.processes import children
from tests.oracle.zoo import TASK, python, write_pack

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def _refusal(code):
    return f"""
try:
    {code}
except OSError as error:
    result = {{"errno": error.errno}}
else:
    result = {{"errno": None}}
"""


REFUSED = ({"errno": 1}, {"errno": 13})


def _environments(keeper):
    """Return what the kernel shows as environment of a keeper and its host."""
    pids = (keeper, *children(keeper))
    return b"".join(Path(f"/proc/{pid}/environ").read_bytes() for pid in pids)


def _answers(zoo, level, *attempts):
    """Return what each attempt of one session met."""

    async def scenario(session):
        await session.reset()
        return [await python(session, _refusal(code)) for code in attempts]

    return zoo.session(scenario, level=level)


def test_state_does_not_bleed_between_sessions(zoo, level):
    pack = write_pack(zoo.folder)

    async def one(host, gate, lengths):
        async with gate:
            session = await host.open_session(TASK, deadline=anyio.current_time() + 30)
            await session.reset()
            lengths.append(
                (await session.call_tool("leak", {}, turn_index=0))["length"]
            )
            await session.close()

    async def main():
        gate, lengths = anyio.CapacityLimiter(8), []
        async with (
            zoo.host(pack, level=level) as host,
            anyio.create_task_group() as group,
        ):
            for _ in range(20):
                group.start_soon(one, host, gate, lengths)
        return lengths

    assert anyio.run(main) == [1] * 20


def test_no_secret_of_the_evaluator_reaches_any_process_of_the_pack(
    zoo, level, monkeypatch
):
    monkeypatch.setenv("CANDIDATE_KEY", "planted-secret")
    code = """
found = {}
for who in ("self", str(os.getppid()), "thread-self"):
    try:
        found[who] = open(f"/proc/{who}/environ").read()
    except OSError as error:
        found[who] = ""
result = {"environ": dict(os.environ), "proc": "".join(found.values()),
          "argv": sys.argv}
"""
    pack = write_pack(zoo.folder)

    async def main():
        async with zoo.host(pack, level=level) as host:
            outside = _environments(host.keeper_pid)
            session = await host.open_session(TASK, deadline=anyio.current_time() + 30)
            await session.reset()
            return outside, await python(session, code)

    outside, seen = anyio.run(main)

    assert b"planted" not in outside
    assert b"PYTHONHASHSEED=0" in outside
    assert "planted" not in canonical_json(seen)
    assert seen["environ"]["TZ"] == "UTC"
    assert os.environ["CANDIDATE_KEY"] == "planted-secret"


def test_pack_cannot_look_into_the_evaluator(zoo, level):
    files = [f"/proc/{os.getpid()}/{name}" for name in ("environ", "mem", "maps")]
    answers = _answers(zoo, level, *(f"open({file!r}, 'rb')" for file in files))

    assert all(answer in REFUSED for answer in answers)


def test_worker_has_no_foreign_descriptor(zoo, level):
    code = """
open_ones = []
for number in range(1024):
    try:
        os.fstat(number)
    except OSError:
        continue
    open_ones.append(number)
result = {"open": open_ones}
"""

    assert zoo.python(code, level=level) == {"open": [0, 1, 2, 900]}


def test_worker_starts_in_a_private_empty_folder_of_its_own(zoo, level):
    code = """
open("mine", "w").write("x")
result = {"cwd": os.getcwd(), "home": os.environ["HOME"], "list": os.listdir("."),
          "mode": os.stat(".").st_mode & 0o777, "session": os.getsid(0) == os.getpid()}
"""
    seen = zoo.python(code, level=level)

    assert seen["cwd"] == seen["home"]
    assert seen["cwd"].startswith(str(zoo.scratch))
    assert seen["list"] == ["mine"]
    assert (seen["mode"], seen["session"]) == (0o700, True)


def test_worker_cannot_raise_its_own_limits(zoo, level):
    code = (
        _refusal("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))")
        .replace("OSError", "(OSError, ValueError)")
        .replace("error.errno", "1")
    )

    assert zoo.python(code, level=level) in REFUSED


def test_memory_beyond_the_limit_is_refused_inside_the_worker(zoo, level):
    fault = zoo.fault("bytearray(400 << 20)", level=level, memory_bytes=300 << 20)

    assert (fault.kind, "MemoryError" in fault.detail) == ("error", True)


def test_file_beyond_the_limit_is_refused(zoo, level):
    code = _refusal("open('big', 'wb').write(b'x' * 2_000_000)")

    assert zoo.python(code, level=level, file_bytes=1_000_000) == {"errno": 27}


def test_applied_containment_says_what_is_not_enforced(zoo, level):
    zoo.python("", level=level)
    applied = zoo.evidence["containment"]

    assert applied["level"] == level
    if os.getuid() == 0:
        assert applied["limits"]["processes"]["enforced"] is False
    assert ("landlock" in applied) is (level != "process")
    assert ("namespaces" in applied) is (level == "namespaces")


def test_confined_pack_reaches_no_file_outside(zoo, tmp_path, strong_level):
    benchmark = tmp_path / "benchmark.parquet"
    benchmark.write_text("gold")

    answers = _answers(
        zoo,
        strong_level,
        f"open({str(benchmark)!r})",
        f"os.listdir({str(tmp_path)!r})",
        f"os.unlink({str(benchmark)!r})",
        "open('/etc/passwd')",
        "os.listdir('/proc')",
    )

    assert all(answer in REFUSED for answer in answers)
    assert benchmark.read_text() == "gold"


def test_confined_pack_writes_nowhere_but_in_its_folder(zoo, tmp_path, strong_level):
    outside = str(tmp_path / "written")
    inside_pack = str(tmp_path / "pack" / "written")

    *outside_answers, inside = _answers(
        zoo,
        strong_level,
        f"open({outside!r}, 'w')",
        f"open({inside_pack!r}, 'w')",
        "open('/tmp/fairtrial-test', 'w')",
        "open('here', 'w')",
    )

    assert all(answer in REFUSED for answer in outside_answers)
    assert inside == {"errno": None}


def test_confined_sessions_cannot_read_each_other(zoo, strong_level):
    pack = write_pack(zoo.folder)

    async def main():
        async with zoo.host(pack, level=strong_level) as host:
            end = anyio.current_time() + 30
            first = await host.open_session(TASK, deadline=end)
            second = await host.open_session(TASK, deadline=end)
            path = await python(
                first, "open('note', 'w').write('x'); result = {'cwd': os.getcwd()}"
            )
            note = f"{path['cwd']}/note"
            own = await python(first, _refusal(f"open({note!r})"))
            return own, await python(second, _refusal(f"open({note!r})"))

    own, other = anyio.run(main)
    assert own == {"errno": None}
    assert other in REFUSED


RAW = """import ctypes; c = ctypes.CDLL(None, use_errno=True)
    if {call} == -1: raise OSError(ctypes.get_errno(), '')"""


def test_confined_pack_makes_no_socket_and_no_dangerous_call(zoo, strong_level):
    attempts = (
        "import socket; socket.socket(socket.AF_INET)",
        "import socket; socket.socket(socket.AF_INET6)",
        "import socket; socket.socket(socket.AF_UNIX)",
        "import socket; socket.socketpair(socket.AF_INET)",
        "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "import socket; socket.socketpair()[0].connect('/dev/log')",
        "os.chroot('.')",
        "os.mkfifo('/tmp/fairtrial-fifo')",
        RAW.format(call="c.unshare(0x10000000)"),
        RAW.format(call="c.ptrace(16, os.getppid(), 0, 0)"),
        RAW.format(call="c.mount(b'none', b'/', b'tmpfs', 0, None)"),
        RAW.format(call="c.syscall(425, 8, 0)"),
    )
    answers = _answers(zoo, strong_level, *attempts)

    allowed = [
        attempt
        for attempt, answer in zip(attempts, answers, strict=True)
        if answer not in REFUSED
    ]
    assert allowed == []


def test_confined_pack_cannot_signal_the_evaluator(zoo, sandbox, strong_level):
    if not sandbox[strong_level]["applied"]["landlock"]["scope"]:
        pytest.skip("this kernel's Landlock has no signal scope (ABI 6)")
    (answer,) = _answers(zoo, strong_level, f"os.kill({os.getpid()}, 0)")

    # In a process namespace of its own the evaluator does not even exist.
    assert answer in (*REFUSED, {"errno": 3})


def test_confined_pack_can_still_work(zoo, strong_level):
    code = """
import sqlite3, socket, zoneinfo, decimal, random
database = sqlite3.connect("data.sqlite")
database.execute("create table t (n)")
left, right = socket.socketpair()
thread = threading.Thread(target=left.send, args=(b"x",))
thread.start(); thread.join()
child = subprocess.run(["/bin/echo", "hello"], stdout=subprocess.PIPE)
result = {"socketpair": right.recv(1).decode(), "child": child.stdout.decode(),
          "backend": len(open(__file__).read()) > 10}
"""

    assert zoo.python(code, level=strong_level) == {
        "socketpair": "x",
        "child": "hello\n",
        "backend": True,
    }


def test_namespaced_worker_is_alone_and_offline(zoo, sandbox):
    if not sandbox["namespaces"]["available"]:
        pytest.skip(sandbox["namespaces"]["detail"])
    code = "result = {'pid': os.getpid(), 'shm': os.path.exists('/dev/shm/x')}"

    assert zoo.python(code, level="namespaces") == {"pid": 1, "shm": False}


REFUSING = """
import sys
from pathlib import Path
import anyio
from harness.errors import FairtrialError
from harness.oracle.contracts import PackCode
from harness.oracle.host import OracleHost
from oracle_workers import seccomp, syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install((sys.argv[1],))
root = Path(sys.argv[2])
pack = PackCode(root, root / "backend.py", None, root / "assertions.py", None)
async def main():
    async with OracleHost(pack, level=sys.argv[3], scratch=Path(sys.argv[4])):
        pass
try:
    anyio.run(main)
except FairtrialError as error:
    print(error.code, error.violations[0].actual)
"""


@pytest.mark.parametrize(
    ("call", "level", "missing"),
    [
        ("landlock_create_ruleset", "confined", "landlock"),
        ("landlock_restrict_self", "confined", "landlock"),
        ("landlock_create_ruleset", "namespaces", "landlock"),
        ("unshare", "namespaces", "namespaces"),
    ],
)
def test_level_with_a_missing_piece_is_refused_before_the_import(
    zoo, tmp_path, call, level, missing
):
    marker = tmp_path / "imported"
    pack = write_pack(zoo.folder, backend=f"open({str(marker)!r}, 'w')")
    command = [sys.executable, "-c", REFUSING, call, pack.root, level, zoo.scratch]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert finished.stdout.split() == ["eval_isolation_unavailable", missing]
    assert not marker.exists()


OWN_FOLDER_IN_EVERY_ENVIRONMENT = """
child = subprocess.run(["/usr/bin/env"], capture_output=True, text=True)
lines = dict(line.split("=", 1) for line in child.stdout.splitlines())
result = {"cwd": os.getcwd(), "home": os.environ["HOME"],
          "bytes": os.environb[b"TMPDIR"].decode(),
          "below": [lines["HOME"], lines["TMPDIR"]]}
"""


@pytest.mark.slow
def test_own_folder_stands_in_the_environment_of_the_worker_and_of_its_programs(
    zoo, level
):
    seen = zoo.python(OWN_FOLDER_IN_EVERY_ENVIRONMENT, level=level)

    assert seen["home"] == seen["bytes"] == seen["cwd"]
    assert seen["below"] == [seen["cwd"]] * 2
