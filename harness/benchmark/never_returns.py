"""Check T1: a tool that never returns is killed on the path that tasks use.

The pack under test cannot be asked to hang, so a pack of one hanging tool runs
through the same host, session and deadlines.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from harness.benchmark.gold_run import open_gold_session
from harness.benchmark.oracle_access import GoldOracle
from harness.benchmark.pack_code import PackCode

CALL_TIMEOUT_S: Final = 0.1
_BACKEND: Final = """\
def list_tools():
    return ["hang"]


def reset(*, ctx, fixtures=None):
    pass


def call_tool(name, arguments, *, ctx):
    while True:
        pass


def get_state():
    return {}
"""


async def hanging_tool_problem(oracle: GoldOracle) -> str:
    """Return what went wrong, or empty when the hanging worker was killed in time."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-t1-") as folder:
        code = _write_pack(Path(folder))
        try:
            async with (
                oracle.host(code, mode="shared", call_timeout_s=CALL_TIMEOUT_S) as host,
                open_gold_session(host, "t1", 0) as session,
            ):
                await session.call_tool("hang", {}, turn_index=0)
        except oracle.fault_type as fault:
            kind = getattr(fault, "kind", "")
            return "" if kind == "timeout" else f"the hanging call ended as {fault}"
    return "the hanging call returned"


def _write_pack(root: Path) -> PackCode:
    backend, assertions = root / "backend.py", root / "assertions.py"
    backend.write_text(_BACKEND, encoding="utf-8")
    assertions.write_text("ASSERTIONS = {}\n", encoding="utf-8")
    return PackCode(root.resolve(), backend.resolve(), None, assertions.resolve())
