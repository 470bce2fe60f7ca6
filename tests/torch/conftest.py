"""Fixtures of the tests that load a model."""

import os
from pathlib import Path

import pytest

from tests.torch import packages
from tests.torch.tiny_model import build

# Threads that wait for each other in busy loops take minutes on shared cores. Read when
# the library is imported, here and in every process that a test starts.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents and "stage" not in item.path.name:
            item.add_marker(pytest.mark.torch)
            item.add_marker(pytest.mark.slow)
            # Importing the library alone takes ten seconds on a busy machine.
            item.add_marker(pytest.mark.timeout(180))
            # The library's own warnings are not about this project.
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(autouse=True)
def _installed(request):
    if request.node.get_closest_marker("torch"):
        packages.require()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A tiny checkpoint that no test changes."""
    packages.require()
    return build(tmp_path_factory.mktemp("checkpoint"))
