"""Records of a short while share one sync, and none waits for ever."""

import os

import anyio
import pytest

from harness.errors import EvidenceError
from harness.evidence.commit import COMMIT_INTERVAL_S, Committer
from harness.evidence.log import AppendLog
from tests.evidence.samples import NOTES, key


@pytest.fixture
def log(tmp_path):
    with AppendLog.open(tmp_path / NOTES.file_name, NOTES, writable=True) as opened:
        yield opened


async def synced(log):
    with anyio.fail_after(5):
        while log.dirty:
            await anyio.lowlevel.checkpoint()


def serve(log, work, interval_s=0.01):
    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(Committer([log], interval_s).run)
            await work()
            group.cancel_scope.cancel()

    anyio.run(main)


def test_many_records_share_one_sync(log):
    async def work():
        for number in range(500):
            log.append("first", key(number), {})
        await synced(log)

    serve(log, work, interval_s=0.05)

    assert log.fsync_count == 1


def test_records_that_come_later_are_synced_too(log):
    async def work():
        for number in range(3):
            log.append("first", key(number), {})
            await synced(log)

    serve(log, work)

    assert log.fsync_count == 3


def test_records_from_before_the_start_are_synced(log):
    log.append("first", key(1), {})

    serve(log, lambda: synced(log))

    assert log.fsync_count == 1


def test_a_clean_log_is_left_alone(log):
    async def work():
        for _ in range(50):
            await anyio.lowlevel.checkpoint()

    serve(log, work, interval_s=0)

    assert log.fsync_count == 0


def test_a_stopped_committer_leaves_the_log_to_its_owner(log):
    async def work():
        await anyio.lowlevel.checkpoint()

    serve(log, work)
    log.append("first", key(1), {})

    assert log.on_dirty is None
    assert log.dirty


def test_a_sync_that_fails_ends_the_run_and_the_log(log, monkeypatch):
    def refuse(_):
        raise OSError(5, "Input/output error")

    async def work():
        log.append("first", key(1), {})
        await anyio.sleep_forever()

    # No disk that fails to sync can be had for a test.
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(ExceptionGroup) as caught:
            serve(log, work)

    assert caught.group_contains(EvidenceError, match="eval_cli_runtime_failed")
    with pytest.raises(EvidenceError, match="an earlier sync failed"):
        log.append("first", key(2), {})


def test_the_loss_bound_is_a_quarter_of_a_second():
    assert COMMIT_INTERVAL_S == 0.25
