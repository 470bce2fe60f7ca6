"""Tests with a model are left out by default, and never skipped by the CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CI = (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_ci_installs_the_pinned_packages_and_runs_the_tests():
    assert "--requirement tests/torch/requirements.txt\n" in CI
    assert "CI=true .venv/bin/python -m pytest -q -m torch tests/torch\n" in CI
    assert [line for line in CI.splitlines() if line.startswith('step "torch: ')] == [
        'step "torch: packages" torch_packages',
        'step "torch: tests" torch_tests',
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "status", "word"),
    [({}, 0, "skipped"), ({"CI": "true"}, 1, "error")],
)
def test_missing_packages_skip_for_a_developer_and_fail_in_the_ci(
    environment, status, word, tmp_path
):
    # A distribution of the name with another version hides an installed one.
    (tmp_path / "torch-0.dist-info").mkdir()
    (tmp_path / "torch-0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 0\n"
    )
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-m", "torch"),
            str(HERE / "test_torch_local.py"),
        ],
        cwd=ROOT,
        env=inherited | environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == status, done.stdout
    assert word in done.stdout
    assert "passed" not in done.stdout
