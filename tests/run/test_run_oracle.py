"""One host for a run: it answers the gates and serves the episodes."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread
import pytest

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.causes import EXIT_INTERRUPTED
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.errors import OracleError
from harness.oracle.certifying import CertifyingOracle
from harness.run.committing import accompanied
from harness.run.run_oracle import RunOracle


@pytest.fixture
def config(bench):
    return bench.config("gold")


@pytest.fixture
def pack():
    return load_pack(resolve_pack("library"))


def asking(oracle, code):
    """What asks as the gates do: from a thread."""
    return partial(
        anyio.to_thread.run_sync, partial(oracle.probe, code, level="process")
    )


def test_the_host_that_answered_the_gates_serves_the_run(config, pack):
    async def run():
        async with AsyncExitStack() as stack:
            oracle = RunOracle(config, stack)
            report = await accompanied(oracle.answer, asking(oracle, pack.code()))
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
            oracle = RunOracle(config, stack)
            return await accompanied(oracle.answer, asking(oracle, code))

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


@pytest.fixture
def stuck(tmp_path):
    """A config of a pack that tells a pipe of its import, and imports for ever.

    It does so from the moment at which there is a pipe.
    """
    root, pipe = tmp_path / "pack", tmp_path / "pipe"
    shutil.copytree(resolve_pack("library"), root)
    with (root / "backend.py").open("a") as backend:
        backend.write(
            "import os, signal\n"
            f"if os.path.exists({str(pipe)!r}):\n"
            f"    open({str(pipe)!r}, 'w').close()\n"
            "    signal.pause()\n"
        )
    folder = tmp_path / "benchmark"

    async def published():
        return await publish(load_pack(root), folder, oracle=CertifyingOracle())

    anyio.run(published)
    write_starter_config(
        tmp_path / "eval.yaml",
        run_manifest=folder / "run_manifest.json",
        candidates=[starter_candidate("http://127.0.0.1:9/v1", "gold")],
        oracle=OracleFiles("python", root / "manifest.yaml", root / "backend.py"),
        output_dir="eval-run",
        changes={},
    )
    os.mkfifo(pipe)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "start"),
    [
        (signal.SIGTERM, []),
        (signal.SIGINT, []),
        (signal.SIGTERM, ["sh", "-c", 'trap "" INT; exec "$@"', "aside"]),
    ],
    ids=["SIGTERM", "SIGINT", "SIGTERM with SIGINT ignored"],
)
def test_signal_while_the_gates_wait_for_the_pack_ends_the_run(stuck, number, start):
    command = [sys.executable, "-m", "harness.cli", "run", str(stuck / "eval.yaml")]
    words = [*start, *command]
    (stuck / "scratch").mkdir()
    surroundings = {**os.environ, "TMPDIR": str(stuck / "scratch")}
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, env=surroundings
    ) as run:
        (stuck / "pipe").read_text()
        run.send_signal(number)
        _, message = run.communicate(timeout=20)

    assert run.returncode == EXIT_INTERRUPTED
    assert message.splitlines() == [
        "interrupted; a run goes on by the same command with --resume"
    ]
    assert list((stuck / "scratch").iterdir()) == []
    assert not (stuck / "eval-run" / "source_verification_failure.json").exists()
