"""Standard streams that are missing or go away do not end a command's work."""

import os
import signal
import subprocess
import sys

import pytest

from tests.run.gold_server import CountingControl

RUN = [sys.executable, "-m", "harness.cli", "run"]


@pytest.mark.slow
def test_run_outlives_the_reader_of_its_progress(bench, benchmark):
    control = CountingControl(benchmark)
    with control.served() as server:
        bench.config("gold", base_url=server.url)
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as nobody:
            done = subprocess.run(
                [*RUN, str(bench.folder / "eval.yaml")],
                stdout=subprocess.DEVNULL,
                stderr=nobody,
                timeout=50,
                check=False,
            )

    assert done.returncode == 0
    assert (bench.output() / "eval_manifest.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_run_without_a_standard_stream_finishes(bench, benchmark, closed):
    control = CountingControl(benchmark)
    with control.served() as server:
        bench.config("gold", base_url=server.url)
        words = [*RUN, str(bench.folder / "eval.yaml")]
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *words], timeout=50, check=False
        )

    assert done.returncode == 0
    assert (bench.output() / "eval_manifest.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_polite_signal_ends_like_an_interrupt_and_leaves_no_folder(
    bench, benchmark, tmp_path, number
):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    victim = []
    control = CountingControl(
        benchmark, lambda n: victim[0].send_signal(number) if n == 20 else None
    )
    with control.served() as server:
        bench.config("gold", base_url=server.url)
        victim.append(
            subprocess.Popen(
                [*RUN, str(bench.folder / "eval.yaml")],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": str(scratch)},
            )
        )
        status = victim[0].wait(50)

    assert status == 130
    assert list(scratch.iterdir()) == []
