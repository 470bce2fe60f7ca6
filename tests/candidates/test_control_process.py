"""The server as a managed subprocess: ready, used, and gone on every way out."""

import json
import os
import subprocess
import sys

import anyio
import httpx
import pytest

from harness.benchmark.commit_marker import MANIFEST_FILE, PUBLISHED_FILE
from harness.benchmark.tables import write_rows
from harness.candidates.control_process import control_server
from harness.candidates.control_server import load_controls, main
from harness.errors import CandidateError, SourceError
from perf.workload import row

ROWS = [row(episode) for episode in range(3)]
DEADLINE_S = 20


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    write_rows(folder / PUBLISHED_FILE, ROWS)
    (folder / MANIFEST_FILE).write_text("{}", encoding="utf-8")
    return folder


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_controls_answer_while_the_context_lasts_and_are_gone_after(
    benchmark, tmp_path
):
    async def run():
        with anyio.fail_after(DEADLINE_S):
            async with (
                control_server(benchmark, log=tmp_path / "log", seed=4) as server,
                httpx.AsyncClient(trust_env=False) as client,
            ):
                body = {
                    "model": "gold",
                    "messages": ROWS[1]["messages"][:2],
                    "tools": ROWS[1]["tools"],
                }
                answer = await client.post(
                    f"{server.base_url}/chat/completions", json=body
                )
        return server.pid, answer.json()

    pid, payload = anyio.run(run)

    assert payload["choices"][0]["finish_reason"] == "tool_calls"
    assert payload["system_fingerprint"] == "control-4"
    assert not is_alive(pid)


@pytest.mark.slow
def test_server_is_gone_when_the_body_raises(benchmark, tmp_path):
    pids = []

    async def run():
        async with control_server(benchmark, log=tmp_path / "log") as server:
            pids.append(server.pid)
            raise LookupError

    with pytest.raises(LookupError):
        anyio.run(run)
    assert not is_alive(pids[0])


@pytest.mark.slow
def test_server_is_gone_when_the_caller_is_cancelled(benchmark, tmp_path):
    pids = []

    async def run():
        with anyio.CancelScope() as scope:
            async with control_server(benchmark, log=tmp_path / "log") as server:
                pids.append(server.pid)
                scope.cancel()
                await anyio.sleep_forever()

    anyio.run(run)

    assert not is_alive(pids[0])


@pytest.mark.slow
def test_failed_start_says_what_the_log_says(tmp_path):
    async def run():
        async with control_server(tmp_path / "nothing", log=tmp_path / "log"):
            pass

    with pytest.raises(CandidateError) as refused:
        anyio.run(run)
    assert refused.value.code == "eval_candidate_server_failed"
    assert "exit status 3" in str(refused.value)
    assert "the folder holds no finished publication" in str(refused.value)


@pytest.mark.slow
def test_start_that_takes_too_long_is_given_up(benchmark, tmp_path):
    async def run():
        async with control_server(
            benchmark, log=tmp_path / "log", ready_timeout_s=0.001
        ):
            pass

    with pytest.raises(CandidateError, match="no line in time"):
        anyio.run(run)


@pytest.mark.parametrize("missing", [MANIFEST_FILE, PUBLISHED_FILE])
def test_unfinished_publication_is_refused(tmp_path, missing):
    for name in {MANIFEST_FILE, PUBLISHED_FILE} - {missing}:
        (tmp_path / name).write_bytes(b"")

    with pytest.raises(SourceError, match=f"no {missing}"):
        load_controls(tmp_path, seed=0)


def test_program_prints_its_error_and_returns_its_status(tmp_path, capsys):
    status = main(["--benchmark", str(tmp_path)])

    assert (status, "eval_source_invalid" in capsys.readouterr().err) == (3, True)


def test_program_serves_until_its_parent_is_gone(benchmark, capsys):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(DEADLINE_S)

    status = main(["--benchmark", str(benchmark), "--parent", str(gone.pid)])

    assert status == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == len(ROWS)


def test_published_table_is_read_in_order(benchmark):
    assert list(load_controls(benchmark, seed=0).tasks) == [r["task_id"] for r in ROWS]
