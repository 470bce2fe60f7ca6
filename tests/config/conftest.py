"""A fresh workspace for every test."""

import pytest

from tests.config.config_files import Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)
