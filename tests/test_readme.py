"""README's two commands are the ones that the CI runs, and they set up everything."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci/run").read_text(encoding="utf-8")
READER = ROOT / ".ci/readme_command.py"


def _reader():
    spec = importlib.util.spec_from_file_location("readme_command", READER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = _reader().commands(README)


def test_readme_has_the_two_commands():
    assert set(COMMANDS) == {"demo", "tests"}


@pytest.mark.parametrize("name", COMMANDS)
def test_ci_runs_the_command_from_the_readme(name):
    done = subprocess.run(
        [sys.executable, READER, name], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == COMMANDS[name]
    assert f"readme_command {name}\n" in CI


@pytest.mark.parametrize("name", COMMANDS)
def test_command_starts_from_nothing_and_is_one_line(name):
    command = COMMANDS[name]

    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert "\n" not in command


def test_demo_command_runs_the_installed_program():
    assert COMMANDS["demo"].endswith("&& .venv/bin/fairtrial demo")


def test_test_command_runs_the_whole_suite():
    whole = "&& .venv/bin/python -m pytest -q -n 2 --dist loadfile"

    assert COMMANDS["tests"].endswith(whole)


def test_unknown_command_is_refused():
    done = subprocess.run(
        [sys.executable, READER, "deploy"], capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert "usage" in done.stderr


def test_ci_stops_at_the_first_failure():
    assert "set -euo pipefail" in CI
    assert "|| true" not in CI
