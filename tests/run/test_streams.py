"""Standard streams that are missing or go away do not end a command's work."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from harness.causes import EXIT_SETUP
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
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "TMPDIR": str(scratch)},
            )
        )
        _, message = victim[0].communicate(timeout=50)

    assert victim[0].returncode == 130
    assert "Traceback" not in message
    assert message.splitlines()[-1].startswith("interrupted; a run goes on")
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_interrupt_after_the_last_answer_leaves_no_folder(bench, benchmark, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    control = CountingControl(benchmark)
    with control.served() as server:
        config = bench.config("gold", base_url=server.url)
        bench.run(config)
        last, run = control.number, []

        def interrupt(number):
            if number == 2 * last:
                threading.Timer(0.02, run[0].send_signal, [signal.SIGINT]).start()

        control.disturb = interrupt
        shutil.rmtree(bench.output())
        run.append(
            subprocess.Popen(
                [*RUN, str(bench.folder / "eval.yaml")],
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": str(scratch)},
            )
        )
        run[0].wait(50)

    assert control.number == 2 * last
    assert list(scratch.iterdir()) == []


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from harness.cli.main import main
sys.exit(main(["run", *sys.argv[2:]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("room_bytes", [0, 1000, 4000, 12000])
def test_machine_that_refuses_the_first_files_is_named_as_such(
    bench, benchmark, room_bytes
):
    bench.config("gold", base_url="http://127.0.0.1:9/v1")
    words = [sys.executable, "-c", LIMITED, str(room_bytes)]
    done = subprocess.run(
        [*words, str(bench.folder / "eval.yaml")],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == EXIT_SETUP
    assert done.stderr.startswith("eval_cli_runtime_failed: ")
    assert "Traceback" not in done.stderr
