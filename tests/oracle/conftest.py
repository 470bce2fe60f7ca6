"""Every test here must leave no process and no folder behind."""

import pytest

from harness.oracle.sandbox import detect_sandbox
from tests.oracle.zoo import Zoo


@pytest.fixture
def zoo(tmp_path):
    """Give a zoo, and check that nothing of it survives the test."""
    keeper = Zoo(tmp_path)
    yield keeper
    assert keeper.left_processes() == []
    assert keeper.left_folders() == []


@pytest.fixture(scope="session")
def sandbox():
    """Give what this machine offers."""
    return detect_sandbox()["levels"]


@pytest.fixture(params=["confined", "namespaces"])
def strong_level(request, sandbox):
    """Give each level that is about files and network, where it is to be had."""
    found = sandbox[request.param]
    if not found["available"]:
        pytest.skip(f"{request.param}: {found['missing']}: {found['detail']}")
    return request.param


@pytest.fixture(params=["process", "confined", "namespaces"])
def level(request, sandbox):
    """Give each level that is to be had."""
    found = sandbox[request.param]
    if not found["available"]:
        pytest.skip(f"{request.param}: {found['missing']}: {found['detail']}")
    return request.param
