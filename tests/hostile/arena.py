"""Where tricks are played: real hosts at each level, honest sessions beside them.

One pack with every trick has a host at each level for all tests. A trick is played at
all levels at once, as a whole episode through the real driver, while an honest
episode runs in the same host. Then whatever the trick left anywhere is looked for.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from harness.benchmark.projection import project_task
from harness.candidates.chat_http import ChatHttpCandidate
from harness.causes import episode_cause
from harness.conversation.driver import EpisodeRequest, drive
from harness.conversation.execution import LiveOracle
from harness.oracle.contracts import (
    OracleFault,
    SessionContext,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.host import OracleHost
from oracle_workers.processes import children, is_running
from tests.candidates.control_episodes import (
    NO_HASH,
    POLICY,
    endpoint,
    script_of,
    task_of,
)
from tests.candidates.recording import Records
from tests.hostile.pack_folders import write_hostile_pack

HONEST = "an-honest-task"
KEY = "planted-in-the-evaluator"
EPISODE_S = 50.0
LATE_S = 2.0
"""How long after its deadline an episode may end here."""
GONE_S = 5.0
SEGMENT = 0x66_74_00_01
_IPC_RMID = 0
SMALL = {"memory_bytes": 300 << 20, "file_bytes": 1_000_000, "output_bytes": 1_000_000}
ENDED_RUN = "eval_oracle_session_failed"
"""What a run ends with when its pack host does not start."""


@dataclass
class Outcome:
    """What came of one trick at one level."""

    cause: str
    report: dict = field(default_factory=dict)
    """What the trick says of itself."""
    escapes: set = field(default_factory=set)
    """The ways in which an escape was seen."""
    evidence: dict = field(default_factory=dict)
    """What the episode keeps of its worker."""


class Outside:
    """What lies outside every scratch folder, and how it should look."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name, content in {
            "benchmark/benchmark.parquet": "gold",
            "run/candidate_io_cache.jsonl": "answers",
        }.items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(content)
        (folder / "written").mkdir()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.door = socket.socket(socket.AF_UNIX)
        self.nameless = socket.socket(socket.AF_UNIX)
        with suppress_long_names(folder):
            self.door.bind("door")
        self.nameless.bind("\0" + str(folder)[-60:])
        for each in (self.door, self.nameless):
            each.listen()
        self.memory = Path(f"/dev/shm/fairtrial-hostile-{os.getpid()}")
        self.watched = [folder]

    def facts(self):
        """Return the names that tricks use."""
        return {
            "OUTSIDE": str(self.folder),
            "EVALUATOR": os.getpid(),
            "PORT": self.listener.getsockname()[1],
            "SEGMENT": SEGMENT,
            "PACKAGES": str(Path(anyio.__file__).parent.parent),
        }

    def seen(self):
        """Return the state of everything that a trick could change."""
        found = {name: data for root in self.watched for name, data in files(root)}
        found["memory file"] = self.memory.exists()
        found["memory segment"] = _segment_exists()
        return found

    def mend(self, before):
        """Bring back what `seen` returned."""
        for path in set(self.seen()) - set(before):
            Path(path).unlink()
        for path, state in before.items():
            if isinstance(state, File):
                Path(path).touch()
                Path(path).chmod(state.mode)
                Path(path).write_bytes(state.content)
                os.utime(path, ns=(state.changed_ns, state.changed_ns))
        self.memory.unlink(missing_ok=True)
        _remove_segment()

    def close(self):
        for each in (self.listener, self.door, self.nameless):
            each.close()


@dataclass(frozen=True)
class File:
    """What a file holds, its mode, and the date of its last change."""

    content: bytes
    mode: int
    changed_ns: int


def _is_pristine(folder):
    """Tell whether a folder that waits for its worker is as it was made."""
    if not folder.is_dir() or os.listdir(folder):
        return False
    return stat.S_IMODE(folder.stat().st_mode) == 0o700


def files(root):
    """Yield name and state of every file below a folder."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            facts = path.stat()
            # A test of root reads in spite of the mode, others do not.
            readable = os.access(path, os.R_OK)
            content = path.read_bytes() if readable else b""
            yield str(path), File(content, facts.st_mode, facts.st_mtime_ns)


class suppress_long_names:  # noqa: N801 - a context manager
    """A Unix socket's path is short, and test folders have long ones."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.before = os.getcwd()
        os.chdir(self.folder)

    def __exit__(self, *_):
        os.chdir(self.before)


def _segment_exists():
    table = Path("/proc/sysvipc/shm")
    if not table.exists():
        return False
    lines = table.read_text().splitlines()[1:]
    return any(int(line.split()[0]) == SEGMENT for line in lines)


def _remove_segment():
    libc = ctypes.CDLL(None)
    found = libc.shmget(SEGMENT, 0, 0)
    if found != -1:
        libc.shmctl(found, _IPC_RMID, None)


def descendants():
    """Return every process below this one that has not ended."""
    found, pending = set(), [os.getpid()]
    while pending:
        below = children(pending.pop())
        pending += below
        found.update(pid for pid in below if is_running(pid))
    return found


def below_hosts(host):
    """Return what lives below a pack host while it has no session."""
    hosts = children(host.keeper_pid)
    return {pid for each in hosts for pid in children(each) if is_running(pid)}


def descriptors():
    """Return this process's pipes, process handles and Unix sockets."""
    kinds = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith(("pipe:", "anon_inode:[pidfd]", "anon_inode:[eventp")):
                kinds.append((name, target))
    return set(kinds)


async def gone(pids):
    """Wait until processes have ended; return those that have not in time."""
    left = set()
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                with anyio.move_on_after(GONE_S) as patience:
                    await anyio.wait_readable(handle)
                if patience.cancelled_caught:
                    left.add(pid)
            finally:
                os.close(handle)
    return left


class Arena:
    """Hosts, the honest candidate, and the search for what a trick left."""

    def __init__(self, folder, levels, tricks, pack, row, base_url, outside):
        self.folder = folder
        self.levels = levels
        self.outside = outside
        self.base_url = base_url
        self.task = task_of(row, project_task(pack, row, script_of(row), NO_HASH))
        self.pack = write_hostile_pack(
            folder / "pack",
            [trick for trick in tricks if not trick.has_own_host],
            outside.facts(),
        )
        outside.watched.append(folder / "pack")
        self.hosts = {}
        self.roots = {}

    async def open(self, stack: AsyncExitStack):
        """Start the shared hosts, one at each level."""
        for level in self.levels:
            root = self.folder / f"shared-{level}"
            root.mkdir()
            host = self._host(self.pack, level, root, "shared", 0.5, 10.0, 30)
            self.hosts[level] = await stack.enter_async_context(host)
            self.roots[level] = root

    def _host(self, pack, level, root, mode, call_s, import_s, cpu_s):
        brief = WorkerDeadlines(import_s, 0.5, call_s, 0.5, 0.5, 0.5)
        limits = WorkerLimits(cpu_s=cpu_s, **SMALL)
        return OracleHost(
            pack.code(),
            level=level,
            mode=mode,
            deadlines=brief,
            limits=limits,
            scratch=root,
        )

    async def play(self, trick):
        """Play a trick at every level at once; return the outcomes by level."""
        before = self.outside.seen()
        processes, handles = descendants(), descriptors()
        outcomes = {}
        changes = {}
        # What changes outside has to be told apart by level.
        if "outside" in trick.shows:
            for level in self.levels:
                outcomes |= await self._play_at(trick, [level])
                changes[level] = self.outside.seen() != before
                self.outside.mend(before)
        else:
            outcomes = await self._play_at(trick, self.levels)
            changed = self.outside.seen() != before
            changes = dict.fromkeys(self.levels, changed)
            self.outside.mend(before)
        left = await gone(descendants() - processes)
        kept = descriptors() - handles
        for level, outcome in outcomes.items():
            outcome.escapes |= {
                way
                for way, seen in {
                    "outside": changes[level],
                    "process": left,
                    "descriptor": kept,
                    "report": outcome.report.get("escaped"),
                    "socket": await _takes(outcome.report.get("listens")),
                }.items()
                if seen
            }
        return outcomes

    async def _play_at(self, trick, levels):
        outcomes = {}

        async def at(level):
            play = self._own if trick.has_own_host else self._shared
            outcomes[level] = await play(trick, level)

        async with anyio.create_task_group() as group:
            for level in levels:
                group.start_soon(at, level)
        return outcomes

    async def _shared(self, trick, level):
        host = self.hosts[level]
        outcome = await self._episodes(trick, host)
        (inside,) = self.roots[level].iterdir()
        found = {path.name: path for path in (inside / "host-1").iterdir()}
        found.pop("import")
        if not all(map(_is_pristine, found.values())):
            outcome.escapes.add("folder")
        return outcome

    async def _own(self, trick, level):
        root = self.folder / f"{trick.name}-{level}"
        root.mkdir()
        pack = write_hostile_pack(root / "pack", [trick], self.outside.facts())
        before = dict(files(pack.root))
        scratch = root / "scratch"
        scratch.mkdir()
        host = self._host(
            pack, level, scratch, trick.mode, trick.call_s, trick.import_s, trick.cpu_s
        )
        try:
            async with host:
                outcome = await self._episodes(trick, host)
                honest = await self._episode(host, HONEST, trick)
                left = await gone(below_hosts(host))
        except OracleFault as fault:
            outcome = Outcome(ENDED_RUN, {"fault": fault.operation})
        else:
            # What an import did is done to every session alike.
            is_alike = trick.place == "import" and honest.cause == outcome.cause
            if honest.cause != "episode.completed" and not is_alike:
                outcome.escapes.add("others")
            if left:
                outcome.escapes.add("process")
        if dict(files(pack.root)) != before:
            outcome.escapes.add("outside")
        if os.listdir(scratch):
            outcome.escapes.add("folder")
        return outcome

    async def _episodes(self, trick, host):
        """Hold the hostile episode, and an honest one beside it."""
        honest = []

        async def beside():
            honest.append(await self._episode(host, HONEST, trick))

        async with anyio.create_task_group() as group:
            if not trick.has_own_host:
                group.start_soon(beside)
            for _ in range(trick.episodes):
                outcome = await self._episode(host, trick.name, trick)
        if any(each.cause != "episode.completed" for each in honest):
            outcome.escapes.add("others")
        if host.starts != 1 or not host.is_serving(0):
            outcome.escapes.add("host")
        return outcome

    async def _episode(self, host, task_id, trick):
        started = anyio.current_time()
        deadline = started + EPISODE_S
        part = self.task.spec.executable
        context = SessionContext(task_id, part.seed, part.oracle_clock)
        opened = partial(host.open_session, context, deadline=deadline)
        target = endpoint("gold", self.base_url)
        request = EpisodeRequest(
            task=self.task,
            endpoint=target,
            policy=POLICY,
            plan_identity=NO_HASH,
            trial=0,
            attempt=1,
            max_turns=20,
        )
        async with ChatHttpCandidate(
            target, None, candidate_timeout_s=10, max_retries=0, recorder=Records()
        ) as candidate:
            episode = await drive(
                request,
                candidate,
                deadline=deadline,
                oracle=LiveOracle(opened, part, self.task.catalog, deadline),
            )
        outcome = _outcome(episode)
        if anyio.current_time() - started > trick.call_s + LATE_S:
            outcome.escapes.add("late")
        return outcome


def _outcome(episode):
    cause = episode_cause(episode.status, episode.reason_code, episode.cause_detail)
    execution = episode.execution
    report = next((e.result for e in execution.executions if e.result), {})
    outcome = Outcome(cause.code, report, evidence=execution.worker)
    if episode.status == "completed" and not all(
        each.status == "passed" for each in execution.assertions
    ):
        outcome.escapes.add("verdict")
    return outcome


async def _takes(port):
    """Tell whether somebody still listens at a port."""
    if port is None:
        return False
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True
