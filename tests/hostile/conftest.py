"""One arena for all tricks: a published shop, its gold candidate, hosts by level."""

import os
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from anyio.from_thread import start_blocking_portal

from harness.benchmark.tables import read_rows
from harness.oracle.sandbox import detect_sandbox
from tests.benchmark.shop import published
from tests.hostile.arena import KEY, Arena, Outside
from tests.hostile.pack_folders import write_hostile_pack
from tests.hostile.tricks import LEVELS, read_tricks
from tests.run.gold_server import CountingControl

TRICKS = read_tricks()


@pytest.fixture(scope="session")
def sandbox():
    """What this machine offers."""
    return detect_sandbox()["levels"]


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """An honest shop, published: its pack, its folder and its only row."""
    folder = tmp_path_factory.mktemp("honest-shop")
    pack = write_hostile_pack(folder / "pack", (), {})
    published(pack, folder / "benchmark")
    (row,) = read_rows(folder / "benchmark" / "benchmark.parquet")
    return pack, folder / "benchmark", row


@pytest.fixture(scope="module")
def play(shop, sandbox, tmp_path_factory):
    """Play a trick at every level that is to be had; a trick is played once.

    Not kept any longer than its module needs it: other tests look for processes
    that nobody ended.
    """
    pack, benchmark, row = shop
    folder = tmp_path_factory.mktemp("arena")
    (folder / "outside").mkdir()
    outside = Outside(folder / "outside")
    levels = [level for level in LEVELS if sandbox[level]["available"]]
    known = {}
    os.environ["FAIRTRIAL_HOSTILE_KEY"] = KEY

    @asynccontextmanager
    async def opened(base_url):
        arena = Arena(folder, levels, TRICKS, pack, row, base_url, outside)
        async with AsyncExitStack() as stack:
            await arena.open(stack)
            yield arena

    try:
        with (
            CountingControl(benchmark).served() as server,
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(opened(server.url)) as arena,
        ):

            def played(trick):
                if trick.name not in known:
                    known[trick.name] = portal.call(arena.play, trick)
                return known[trick.name]

            yield played
    finally:
        outside.close()
        del os.environ["FAIRTRIAL_HOSTILE_KEY"]
