"""The library, published once for the session, and a copy for every test."""

import pytest

from tests.benchmark.publications import Publication, publish_library


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return publish_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def publication(tmp_path, library):
    return Publication(tmp_path / "copy", library)
