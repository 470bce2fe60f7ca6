"""`fairtrial candidates serve` as a user starts it."""

import http.client
import json
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.benchmark.commit_marker import MANIFEST_FILE, PUBLISHED_FILE
from harness.benchmark.tables import write_rows
from harness.cli.main import main
from perf.workload import row

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 20
FAIRTRIAL = "from harness.cli.main import console; console()"


@pytest.mark.slow
def test_serve_prints_its_url_answers_and_stops_on_a_signal(tmp_path):
    write_rows(tmp_path / PUBLISHED_FILE, [row(0)])
    (tmp_path / MANIFEST_FILE).write_text("{}", encoding="utf-8")
    words = ["candidates", "serve", "--benchmark", str(tmp_path), "--seed", "2"]
    with subprocess.Popen(
        [sys.executable, "-c", FAIRTRIAL, *words], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        try:
            assert select.select([process.stdout], [], [], DEADLINE_S)[0]
            ready = json.loads(process.stdout.readline())
            host = ready["url"].removeprefix("http://").removesuffix("/v1")
            connection = http.client.HTTPConnection(host, timeout=DEADLINE_S)
            connection.request("GET", "/healthz")
            health = json.loads(connection.getresponse().read())
            connection.close()
            process.send_signal(signal.SIGTERM)
            status = process.wait(DEADLINE_S)
        finally:
            process.kill()

    assert (ready["seed"], health) == (2, {"status": "ok", "tasks": 1})
    assert status == 0


def test_folder_that_is_no_publication_is_refused(tmp_path, capsys):
    status = main(["candidates", "serve", "--benchmark", str(tmp_path)])

    assert status == 3
    assert "fairtrial publish" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_port_that_is_none_is_refused(port, tmp_path, capsys):
    words = ["candidates", "serve", "--benchmark", str(tmp_path), "--port", port]
    with pytest.raises(SystemExit) as refused:
        main(words)

    assert refused.value.code == 2
    assert "--port" in capsys.readouterr().err


def test_action_is_mandatory(capsys):
    with pytest.raises(SystemExit) as refused:
        main(["candidates"])

    assert refused.value.code == 2
    assert "ACTION" in capsys.readouterr().err
