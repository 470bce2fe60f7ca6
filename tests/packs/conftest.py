"""The bank, published once for the session."""

from functools import partial

import anyio
import pytest

from harness.benchmark.bundled import bundled_pack
from harness.benchmark.commit_marker import PUBLISHED_FILE
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish, read_rows
from harness.oracle.certifying import CertifyingOracle
from harness.oracle.contracts import WorkerDeadlines, WorkerLimits
from harness.oracle.host import OracleHost


def published(pack, folder):
    """Publish a pack with real workers."""
    return anyio.run(partial(publish, pack, folder, oracle=CertifyingOracle()))


def open_host(pack):
    """Return a host of the pack, to be entered."""
    return OracleHost(
        pack.code(),
        level="process",
        mode="shared",
        deadlines=WorkerDeadlines(),
        limits=WorkerLimits(),
    )


@pytest.fixture(scope="session")
def bank():
    return load_pack(bundled_pack("bank"))


@pytest.fixture(scope="session")
def publication(bank, tmp_path_factory):
    return published(bank, tmp_path_factory.mktemp("bank") / "benchmark")


@pytest.fixture(scope="session")
def rows(publication):
    return list(read_rows(publication.output / PUBLISHED_FILE))


@pytest.fixture(scope="session")
def first_rows(rows):
    """The first task of each template."""
    first = {}
    for row in rows:
        first.setdefault(row["template_id"], row)
    return list(first.values())
