"""One host for a run: it answers the gates and serves the episodes."""

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread
import pytest

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.pack import load_pack
from harness.errors import OracleError
from harness.run.run_oracle import RunOracle


@pytest.fixture
def config(bench):
    return bench.config("gold")


@pytest.fixture
def pack():
    return load_pack(resolve_pack("library"))


def test_the_host_that_answered_the_gates_serves_the_run(config, pack):
    async def run():
        async with AsyncExitStack() as stack:
            oracle = RunOracle(config, stack)
            asked = partial(oracle.probe, pack.code(), level="process")
            report = await anyio.to_thread.run_sync(asked)
            return report, (await oracle.host(pack)).starts

    report, starts = anyio.run(run)

    assert report.importable
    assert report.tools
    assert starts == 1


def test_a_pack_that_does_not_import_is_a_report(config, pack, tmp_path):
    broken = tmp_path / "backend.py"
    broken.write_text("raise RuntimeError('no backend today')\n")
    code = replace(pack.code(), backend=broken)

    async def run():
        async with AsyncExitStack() as stack:
            asked = partial(RunOracle(config, stack).probe, code, level="process")
            return await anyio.to_thread.run_sync(asked)

    report = anyio.run(run)

    assert not report.importable
    assert "no backend today" in report.detail


def test_a_host_that_cannot_start_after_the_gates_ends_the_run(config, pack, tmp_path):
    code = replace(pack.code(), backend=tmp_path / "gone.py")

    class Gone:
        pack_id, version = pack.pack_id, pack.version

        def code(self):
            return code

    async def run():
        async with AsyncExitStack() as stack:
            await RunOracle(config, stack).host(Gone())

    with pytest.raises(OracleError, match="eval_oracle_session_failed"):
        anyio.run(run)
