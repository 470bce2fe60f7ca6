"""A pack whose one tool runs whatever a test sends, and ways to talk to it."""

import os
from pathlib import Path

import anyio

from harness.oracle.contracts import (
    OracleFault,
    PackCode,
    SessionContext,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.host import OracleHost
from oracle_workers.processes import children

BACKEND = """
import copy
import os
import signal
import subprocess
import sys
import threading
import time

STATE = {}
LEAK = []


def list_tools():
    return ["python", "leak"]


def reset(*, ctx, fixtures=None):
    STATE.clear()
    STATE.update(copy.deepcopy(fixtures or {}))


def call_tool(name, arguments, *, ctx):
    if name == "leak":
        LEAK.append(name)
        return {"length": len(LEAK)}
    scope = {"result": {}, "ctx": ctx, "arguments": arguments}
    exec(arguments["code"], globals(), scope)
    return scope["result"]


def get_state():
    return copy.deepcopy(STATE)
"""
ASSERTIONS = """
def assert_nothing(*, state, trace, task, ctx):
    pass
"""
CLOCK = "2025-03-01T09:30:00+00:00"
DEADLINES = WorkerDeadlines(
    import_s=20, reset_s=10, call_s=10, state_s=10, assertion_s=10, close_s=10
)
HASTY = WorkerDeadlines(
    import_s=20, reset_s=10, call_s=0.3, state_s=10, assertion_s=10, close_s=10
)
FOREVER = "while True: pass"
TASK = SessionContext("task-1", 7, CLOCK)


def write_pack(folder, *, backend=BACKEND, assertions=ASSERTIONS, fixtures=None):
    """Write a pack into a new folder and return what a host needs of it."""
    root = folder / "pack"
    root.mkdir()
    (root / "backend.py").write_text(backend)
    (root / "assertions.py").write_text(assertions)
    stored = None
    if fixtures is not None:
        stored = root / "fixtures.json"
        stored.write_text(fixtures)
    return PackCode(root, root / "backend.py", None, root / "assertions.py", stored)


class Zoo:
    """Runs scenarios against hosts whose scratch folder it watches."""

    def __init__(self, folder):
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.evidence = None

    def host(
        self, pack, *, level="process", mode="shared", deadlines=DEADLINES, **limits
    ):
        """Return a host that is not started yet."""
        return OracleHost(
            pack,
            level=level,
            mode=mode,
            deadlines=deadlines,
            limits=WorkerLimits(**limits),
            scratch=self.scratch,
        )

    def session(self, scenario, *, pack=None, episode_s=30.0, **options):
        """Run `await scenario(session)` in one session of one host."""
        code = pack or write_pack(self.folder)

        async def main():
            async with self.host(code, **options) as host:
                session = await host.open_session(
                    TASK, deadline=anyio.current_time() + episode_s
                )
                try:
                    return await scenario(session)
                finally:
                    with anyio.CancelScope(shield=True):
                        await session.close()
                    self.evidence = session.evidence()

        return anyio.run(main)

    def python(self, code, **options):
        """Run code in one tool call after a reset and return its `result`."""

        async def scenario(session):
            await session.reset()
            return await python(session, code)

        return self.session(scenario, **options)

    def fault(self, code, **options):
        """Run code that must end in a fault and return the fault."""
        try:
            result = self.python(code, **options)
        except OracleFault as fault:
            return fault
        raise AssertionError(f"no fault, but {result!r}")

    def left_processes(self):
        """Return processes that stand in the scratch folder or below this process."""
        inside = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    place = os.readlink(f"/proc/{name}/cwd")
                except OSError:
                    continue
                if place.startswith(str(self.scratch)):
                    inside.append(int(name))
        return inside + [pid for pid in children(os.getpid()) if _is_pack_process(pid)]

    def left_folders(self):
        """Return what is left in the scratch folder."""
        return sorted(os.listdir(self.scratch))


async def python(session, code, turn_index=0):
    """Run code in one tool call of an open session."""
    return await session.call_tool("python", {"code": code}, turn_index=turn_index)


def _is_pack_process(pid):
    try:
        return b"FAIRTRIAL_PACK_HOST" in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
