"""A worker's folder is lent again only if nothing was ever done in it."""

import os
import time

import anyio
import pytest

from harness.oracle.worker_folders import WorkerFolders
from tests.oracle.zoo import TASK, python, write_pack

PATIENCE_S = 5.0


@pytest.fixture
def lender(tmp_path, monkeypatch):
    """Give a lender for whom every folder has settled."""
    monkeypatch.setattr("harness.oracle.worker_folders._STILL_S", -1.0)
    return WorkerFolders(tmp_path)


def give_back(folder, *, may_be_lent=True):
    async def run():
        await folder.give_back(may_be_lent=may_be_lent)

    anyio.run(run)


def settled(lender):
    """Lend a folder whose use would show."""
    give_back(lender.lend())
    return lender.lend()


def create_and_remove(path):
    (path / "x").touch()
    (path / "x").unlink()


def close_and_open(path):
    path.chmod(0o500)
    path.chmod(0o700)


def set_times(path):
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def set_attribute(path):
    try:
        os.setxattr(path, "user.note", str(time.monotonic_ns()).encode())
    except OSError:
        pytest.skip("no attributes on this file system")


def test_untouched_folder_is_lent_again(lender):
    first = settled(lender)
    give_back(first)

    assert lender.lend().path == first.path


@pytest.mark.parametrize(
    "use", [create_and_remove, close_and_open, set_times, set_attribute]
)
def test_used_folder_is_replaced_by_a_new_one(lender, use):
    first = settled(lender)
    before = first.path.stat().st_ctime_ns
    ends = time.monotonic() + PATIENCE_S
    while first.path.stat().st_ctime_ns == before and time.monotonic() < ends:
        use(first.path)
    give_back(first)
    second = lender.lend()

    assert second.path != first.path
    assert not first.path.exists()
    assert (os.listdir(second.path), second.path.stat().st_mode & 0o777) == ([], 0o700)


def test_folder_with_something_in_it_is_removed_whole(lender):
    first = settled(lender)
    (first.path / "deep").mkdir()
    (first.path / "deep" / "rest").write_text("x")
    give_back(first)

    assert not first.path.exists()


def test_folder_that_may_be_in_use_goes_and_nothing_comes(lender, tmp_path):
    give_back(lender.lend(), may_be_lent=False)

    assert os.listdir(tmp_path) == []


def test_folder_made_just_now_is_not_trusted(tmp_path):
    lender = WorkerFolders(tmp_path)
    first = lender.lend()
    give_back(first)

    assert not first.path.exists()
    assert lender.lend().path != first.path


def test_no_folder_is_lent_twice_at_once(lender):
    give_back(settled(lender))

    assert lender.lend().path != lender.lend().path


def test_spare_folders_are_no_more_than_were_lent_at_once(lender, tmp_path):
    for _ in range(3):
        lent = [lender.lend() for _ in range(4)]
        for folder in lent:
            give_back(folder)

    assert len(os.listdir(tmp_path)) <= 4


def test_scratch_folder_that_is_gone_is_no_trouble(lender, tmp_path):
    first = settled(lender)
    first.path.rmdir()
    tmp_path.rmdir()

    give_back(first)


LEAVES = (
    "open('x', 'w').write('1'); os.chmod('.', 0o500)",
    "result['found'] = [os.getcwd(), os.listdir('.'), os.stat('.').st_mode & 0o777]",
)


@pytest.mark.slow
def test_worker_finds_an_empty_folder_whatever_another_left_in_its_own(
    zoo, monkeypatch, level
):
    monkeypatch.setattr("harness.oracle.worker_folders._STILL_S", -1.0)
    pack = write_pack(zoo.folder)
    found = []

    async def attempt(host, code):
        session = await host.open_session(TASK, deadline=anyio.current_time() + 30)
        await session.reset()
        result = await python(session, code)
        await session.close()
        found.extend(result.values())

    async def main():
        async with zoo.host(pack, level=level) as host:
            for code in (LEAVES[1], LEAVES[0], LEAVES[1], "pass", LEAVES[1]):
                await attempt(host, code)

    anyio.run(main)

    assert [rest for _, *rest in found] == [[[], 0o700]] * 3
    assert len({place for place, *_ in found}) == 3
