"""Check T1: a tool that never returns is killed on the path that tasks use.

The pack under test cannot be asked to hang, so a pack of one hanging tool, or a
listener that never answers, takes its place behind the same host, session and
deadlines.
"""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path
from typing import Final

from harness.benchmark.endpoint_config import PROTOCOL
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


async def hanging_endpoint_problem(oracle: GoldOracle) -> str:
    """Return what went wrong, or empty when the waiting client was killed in time."""
    with (
        tempfile.TemporaryDirectory(prefix="fairtrial-t1-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        # The kernel takes the connection, and nobody ever answers on it.
        code = _write_endpoint(Path(folder), listener.getsockname()[1])
        try:
            async with oracle.host(code, mode="shared", call_timeout_s=CALL_TIMEOUT_S):
                return "an endpoint that never answers was taken for the oracle"
        except oracle.fault_type as fault:
            kind = getattr(fault, "kind", "")
            return "" if kind == "timeout" else f"the waiting client ended as {fault}"


def _write_pack(root: Path) -> PackCode:
    backend = root / "backend.py"
    backend.write_text(_BACKEND, encoding="utf-8")
    return PackCode(root.resolve(), backend.resolve(), None, _assertions(root))


def _write_endpoint(folder: Path, port: int) -> PackCode:
    root = folder.resolve()
    expected = {
        "oracle_id": "silence",
        "oracle_version": "1",
        "content_digest": "sha256:" + "0" * 64,
    }
    endpoint = root / "endpoint_config.yaml"
    content = {
        "protocol_version": PROTOCOL,
        "base_url": f"https://127.0.0.1:{port}",
        "expected": expected,
    }
    endpoint.write_text(json.dumps(content), encoding="utf-8")
    return PackCode(root, None, endpoint, _assertions(root))


def _assertions(root: Path) -> Path:
    assertions = root / "assertions.py"
    assertions.write_text("ASSERTIONS = {}\n", encoding="utf-8")
    return assertions.resolve()
