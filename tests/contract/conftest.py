"""The published desk, made once, and a private copy of it for a test."""

import pytest

from tests.contract.desk import Desk, publish_pack


@pytest.fixture(scope="session")
def publication(tmp_path_factory):
    """The desk pack, published with real workers."""
    return publish_pack(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk_of(publication, tmp_path):
    """Make a desk whose benchmark has the tasks of some tickets only."""

    def make(*tickets):
        return Desk(tmp_path, publication.copy(tmp_path / "source", tickets))

    return make
