"""Keeps one measured command: started lean, it adopts and reaps the whole tree.

Called by `measure` as `keeper.py REPORT_FD TIMEOUT_S COMMAND...` with a bare
interpreter, since a child's peak memory counts from the size of what forked it.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time

SET_CHILD_SUBREAPER = 36
SAMPLE_EVERY_S = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def tree_of(root):
    """Return the process ids below a process, the process itself left out."""
    found = []
    pending = [root]
    while pending:
        pid = pending.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", "rb") as stream:
                    below = [int(word) for word in stream.read().split()]
                found += below
                pending += below
        except OSError:
            continue
    return found


def resident_bytes(pid):
    """Return the resident size of a process, 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:
            return int(stream.read().split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def sample(peak, stop, ends_at):
    """Keep the largest sum of resident sizes; end the tree when time is up."""
    own = os.getpid()
    while not stop.wait(SAMPLE_EVERY_S):
        pids = tree_of(own)
        peak[0] = max(peak[0], sum(map(resident_bytes, pids)))
        if time.monotonic() > ends_at:
            peak[1] = 1
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def main(report, timeout_s, command):
    """Run the command, wait for its whole tree, write the figures to a descriptor."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    peak = [0, 0]
    stop = threading.Event()
    started = time.monotonic()
    first = os.posix_spawnp(command[0], command, os.environ)
    sampler = threading.Thread(target=sample, args=(peak, stop, started + timeout_s))
    sampler.start()
    cpu_s = 0.0
    largest = exit_status = 0
    while True:
        try:
            pid, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            break
        cpu_s += used.ru_utime + used.ru_stime
        largest = max(largest, used.ru_maxrss * 1024)
        if pid == first:
            exit_status = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - started
    stop.set()
    sampler.join()
    if peak[1]:
        return 1
    figures = {
        "exit_status": exit_status,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "peak_process_bytes": largest,
        "peak_tree_bytes": peak[0],
    }
    os.write(report, json.dumps(figures).encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
