"""Which packages the tests marked `torch` need, and what happens without them.

A developer without them gets skipped tests; the CI sets `CI` and fails instead.
"""

import importlib.metadata
import os
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
REQUIREMENTS = (TESTS / "torch/requirements.txt", TESTS / "peer/requirements.txt")


def missing():
    """Yield what is pinned and not installed so."""
    for line in (line for file in REQUIREMENTS for line in _lines(file)):
        name, version = line.split("==")
        name = name.split("[")[0]
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "nothing"
        if found.split("+")[0] != version:
            yield f"{name} {version} expected, {found} installed"


def _lines(file):
    text = file.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def require():
    """Skip or fail the tests that are about to run."""
    lacking = "; ".join(missing())
    if lacking:
        advice = "see tests/torch/requirements.txt"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{lacking}: {advice}")
