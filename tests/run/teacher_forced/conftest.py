"""A bench of its own for every test."""

import pytest

from tests.run.teacher_forced.conversations import TurnBench


@pytest.fixture
def turns(tmp_path):
    """Configs and runs over recorded conversations in one folder."""
    return TurnBench(tmp_path)
