"""llama.cpp's server around a test, and the command line against it."""

import importlib.metadata
import os
import select
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
REQUIREMENTS = HERE / "requirements.txt"
MODEL = "smollm2"
READY_S = 60
RUN_S = 400
"""One run, on a machine that decodes two tokens a second; else it takes ten."""


def _missing():
    pinned = dict(
        line.split("==")
        for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    for name, version in pinned.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "nothing"
        if found != version:
            yield f"{name} {version} expected, {found} installed"


def require_packages():
    """Skip without the packages of the peer stage; in the CI, fail."""
    missing = "; ".join(_missing())
    if missing:
        advice = "pip install --no-deps -r tests/peer/requirements.txt"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{missing}: {advice}")


@contextmanager
def served(log):
    command = [sys.executable, str(HERE / "llama_server.py"), MODEL]
    with (
        log.open("wb") as stream,
        subprocess.Popen(
            [*command, str(HERE / "chat_template.jinja")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
        ) as process,
    ):
        try:
            select.select([process.stdout], [], [], READY_S)
            os.set_blocking(process.stdout.fileno(), False)
            address = (process.stdout.readline() or b"").decode().strip()
            assert address.startswith("http://"), log.read_text(errors="replace")
            yield f"{address}/v1"
        finally:
            process.kill()


def fairtrial(*words):
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
