"""A worker's folder is lent again only if nothing was ever done in it."""

import os
import time

import anyio
import pytest

from harness.oracle.worker_folders import WorkerFolders

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
        os.setxattr(path, "user.note", b"1")
    except OSError:
        pytest.skip("no attributes on this file system")


def test_untouched_folder_is_lent_again(lender):
    first = lender.lend()
    give_back(first)

    assert lender.lend().path == first.path


@pytest.mark.parametrize(
    "use", [create_and_remove, close_and_open, set_times, set_attribute]
)
def test_used_folder_is_replaced_by_a_new_one(lender, use):
    first = lender.lend()
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
    first = lender.lend()
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
    give_back(lender.lend())

    assert lender.lend().path != lender.lend().path


def test_scratch_folder_that_is_gone_is_no_trouble(lender, tmp_path):
    first = lender.lend()
    first.path.rmdir()
    tmp_path.rmdir()

    give_back(first)
