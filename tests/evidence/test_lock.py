"""One run at a time in a folder, told apart by the kernel, named by the lock file."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import EvidenceError
from harness.evidence.lock import LOCK_FILE, RunLock

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from pathlib import Path
from harness.evidence.lock import RunLock
lock = RunLock.acquire(Path(sys.argv[1]), started_at="2026-01-01T00:00:00Z")
print("held", flush=True)
sys.stdin.read()
"""
START = "2026-02-02T00:00:00Z"


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_run_is_refused_and_told_who_holds_the_folder(holder, tmp_path):
    with pytest.raises(EvidenceError) as caught:
        RunLock.acquire(tmp_path, started_at=START)

    assert caught.value.code == "eval_run_in_use"
    assert caught.value.violations[0].actual == (
        f"process {holder.pid} on {socket.gethostname()}, since 2026-01-01T00:00:00Z"
    )


def test_the_lock_ends_with_a_killed_process(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    RunLock.acquire(tmp_path, started_at=START).release()


def test_a_child_of_the_holder_does_not_keep_the_lock(tmp_path):
    lock = RunLock.acquire(tmp_path, started_at=START)
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    )
    child.stdout.readline()
    lock.release()
    try:
        RunLock.acquire(tmp_path, started_at=START).release()
    finally:
        child.kill()
        child.communicate()


def test_a_second_run_in_the_same_process_is_refused(tmp_path):
    with (
        RunLock.acquire(tmp_path, started_at=START),
        pytest.raises(EvidenceError, match=f"process {os.getpid()} on"),
    ):
        RunLock.acquire(tmp_path, started_at=START)


def test_a_released_folder_can_be_taken_again(tmp_path):
    for _ in range(2):
        with RunLock.acquire(tmp_path, started_at=START) as lock:
            pass
        lock.release()

    assert (tmp_path / LOCK_FILE).read_bytes() == b""


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b"{}", b"\xff", b'{"pid":"x"}'])
def test_a_holder_that_did_not_say_its_name_still_holds(tmp_path, note):
    with RunLock.acquire(tmp_path, started_at=START):
        (tmp_path / LOCK_FILE).write_bytes(note)
        with pytest.raises(EvidenceError, match="did not say who it is"):
            RunLock.acquire(tmp_path, started_at=START)


def test_a_lock_file_that_was_left_behind_blocks_nobody(tmp_path):
    (tmp_path / LOCK_FILE).write_text('{"pid": 1, "host": "x", "started_at": "y"}')

    RunLock.acquire(tmp_path, started_at=START).release()


def test_a_lock_file_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "run" / LOCK_FILE).symlink_to(tmp_path / "kept")

    with pytest.raises(EvidenceError) as refused:
        RunLock.acquire(tmp_path / "run", started_at=START)

    assert refused.value.code == "eval_cli_runtime_failed"
    assert (tmp_path / "kept").read_text() == "kept"
