"""Runs against a foreign server are left out by default, and never by the CI."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CI = (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_ci_installs_the_pinned_packages_and_runs_the_tests():
    assert "--no-deps --requirement tests/peer/requirements.txt\n" in CI
    assert "CI=true .venv/bin/python -m pytest -q -m peer tests/peer\n" in CI
    assert re.findall(r'^step "peer: .*$', CI, re.MULTILINE) == [
        'step "peer: packages" peer_packages',
        'step "peer: tests" peer_tests',
    ]


def test_readme_command_leaves_them_out(pytestconfig):
    assert pytestconfig.getini("addopts")[-2:] == ["-m", "not peer and not torch"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "status", "words"),
    [({}, 0, "12 skipped"), ({"CI": "true"}, 1, "12 errors")],
)
def test_missing_packages_skip_for_a_developer_and_fail_in_the_ci(
    environment, status, words, tmp_path
):
    # A distribution of the name with another version hides an installed one.
    (tmp_path / "xllamacpp-0.dist-info").mkdir()
    (tmp_path / "xllamacpp-0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: xllamacpp\nVersion: 0\n"
    )
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-m", "peer"),
            str(HERE / "test_llama_server.py"),
        ],
        cwd=ROOT,
        env=inherited | environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == status, done.stdout
    assert words in done.stdout
