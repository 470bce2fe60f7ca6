"""Process trees: found whole and ended whole."""

import os
import select
import subprocess
import sys

import pytest

from oracle_workers.processes import DoomedTree, children, is_running

TREE = """
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(36, 1)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        os.fork()
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        print("up", flush=True)
        while True:
            time.sleep(60)
if os.fork() == 0:
    if os.fork() == 0:
        print("up", flush=True)
        while True:
            time.sleep(60)
    os._exit(0)
while True:
    time.sleep(60)
"""


@pytest.fixture
def tree():
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
    for _ in range(5):
        process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_ended_process_has_no_children():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert children(process.pid) == []
    assert not is_running(process.pid)


@pytest.mark.slow
def test_tree_with_daemons_is_ended_whole(tree):
    handle = os.pidfd_open(tree.pid)
    doomed = DoomedTree(tree.pid, handle)
    killed = 0
    while handles := doomed.strike():
        killed += len(handles)
        for descriptor in handles:
            select.select([descriptor], [], [], 10)
            os.close(descriptor)
    assert is_running(tree.pid)
    doomed.finish()
    tree.wait()
    os.close(handle)

    # The pipe ends only when nobody holds it any more.
    assert tree.stdout.read() == b""
    assert killed == 5
