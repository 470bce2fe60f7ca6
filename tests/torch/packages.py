"""Which packages the tests marked `torch` need, and what happens without them.

A developer without them gets skipped tests; the CI sets `CI` and fails instead.
"""

import importlib.metadata
import os
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parent / "requirements.txt"


def missing():
    """Yield what is pinned and not installed so."""
    for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, version = line.split("==")
        name = name.split("[")[0]
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "nothing"
        if found.split("+")[0] != version:
            yield f"{name} {version} expected, {found} installed"


def require():
    """Skip or fail the tests that are about to run."""
    lacking = "; ".join(missing())
    if lacking:
        advice = "pip install -r tests/torch/requirements.txt"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{lacking}: {advice}")
