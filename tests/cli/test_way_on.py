"""A command that was cut off names a way on only where it has one."""

import signal
import socket
import subprocess
import sys

import pytest

from harness.causes import EXIT_INTERRUPTED
from harness.cli.main import main


def test_refusal_of_the_machine_names_no_option_that_a_command_lacks(tmp_path, capsys):
    rows, labels = tmp_path / "rows.jsonl", tmp_path / "labels.json"
    rows.write_text("")
    labels.write_text('["a"]')
    files = ["--rows", str(rows), "--labels", str(labels)]

    status = main(
        ["score", "classification", *files, "--output", str(tmp_path / ("x" * 300))]
    )

    message = capsys.readouterr().err
    assert status != 0
    assert "do: " in message
    assert "--resume" not in message


@pytest.mark.slow
def test_interrupted_command_without_resume_names_none():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        words = ["doctor", "--base-url", address, "--model", "m"]
        with subprocess.Popen(
            [sys.executable, "-m", "harness.cli", *words],
            stderr=subprocess.PIPE,
            text=True,
        ) as doctor:
            asked, _ = silent.accept()
            with asked:
                doctor.send_signal(signal.SIGINT)
                _, message = doctor.communicate(timeout=30)

    assert doctor.returncode == EXIT_INTERRUPTED
    assert message.splitlines()[-1] == "interrupted"
