"""Finding and ending a whole process tree, whatever its members do to stay.

The root is a child subreaper, so a process that daemonised itself is still below it.
The root is stopped first and killed last: until then nothing can leave the tree, and
a stopped parent neither forks nor reaps. No member can block or outlive SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

_READ_SIZE = 1 << 16


def children(pid: int) -> list[int]:
    """Return the direct children of a process; an ended one has none."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        text = _read(f"/proc/{pid}/task/{task}/children")
        if text is None and os.path.exists(f"/proc/{pid}/task/{task}"):
            return _children_by_scan(pid)
        found.extend(int(child) for child in (text or b"").split())
    return found


def is_running(pid: int) -> bool:
    """Tell whether a process exists and has not ended (a zombie has ended)."""
    state = _state(pid)
    return state is not None and state[0] not in b"ZX"


class DoomedTree:
    """One process tree on its way out. Not to be shared between event loops.

    `strike` until it returns nothing, waiting for the returned descriptors each time;
    then `finish`.
    """

    def __init__(self, root: int, handle: int | None) -> None:
        """`handle` is the root's pidfd; None means that the root is this process."""
        self._root = root
        self._handle = handle
        if handle is not None:
            _send(handle, signal.SIGSTOP)

    def strike(self) -> list[int]:
        """Kill all descendants; return pidfds (the caller's to close) to wait for."""
        doomed: dict[int, int] = {}
        pending = [self._root]
        while pending:
            found = [child for parent in pending for child in children(parent)]
            pending = []
            for child in found:
                if child in doomed or not is_running(child):
                    continue
                handle = _open(child)
                if handle is not None:
                    doomed[child] = handle
                    _send(handle, signal.SIGSTOP)
                    pending.append(child)
            if not pending and doomed:
                pending = self._late_children(doomed)
        for handle in doomed.values():
            _send(handle, signal.SIGKILL)
        return list(doomed.values())

    def _late_children(self, doomed: dict[int, int]) -> list[int]:
        """Return stopped members that forked before they stopped."""
        return [
            parent
            for parent in (self._root, *doomed)
            if any(
                child not in doomed and is_running(child) for child in children(parent)
            )
        ]

    def finish(self) -> None:
        """Kill the root itself."""
        if self._handle is not None:
            _send(self._handle, signal.SIGKILL)


def kill_descendants(*, deadline_s: float = 5.0) -> bool:
    """Kill and reap everything below this process; True when nothing is left."""
    end = time.monotonic() + deadline_s
    tree = DoomedTree(os.getpid(), None)
    while time.monotonic() < end:
        handles = tree.strike()
        try:
            _wait_all(handles, end)
        finally:
            for handle in handles:
                os.close(handle)
        if not _reap_all() and not handles:
            return True
    return False


def _wait_all(handles: list[int], end: float) -> None:
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    waiting = set(handles)
    while waiting and (left := end - time.monotonic()) > 0:
        for handle, _ in poll.poll(left * 1000):
            poll.unregister(handle)
            waiting.discard(handle)


def _reap_all() -> bool:
    """Reap ended children; tell whether any child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _send(handle: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)


def _state(pid: int) -> list[bytes] | None:
    text = _read(f"/proc/{pid}/stat")
    if text is None:
        return None
    return text.rpartition(b")")[2].split()


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pieces = []
        while piece := os.read(descriptor, _READ_SIZE):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _children_by_scan(pid: int) -> list[int]:
    # Kernels without CONFIG_PROC_CHILDREN have no `children` file.
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            state = _state(int(name))
            if state is not None and int(state[1]) == pid:
                found.append(int(name))
    return found
