"""Group commit: one sync for all records of a short while.

Appending hands a record to the kernel, so a killed process loses nothing. What a
power loss or a crashed kernel can take is bounded: at most the records of the last
`COMMIT_INTERVAL_S` plus the time that one fsync takes. Closing a log syncs it, so a
run that ended in order has lost nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import anyio.to_thread

from harness.evidence.log import AppendLog

COMMIT_INTERVAL_S: Final = 0.25
"""The loss bound: longest time that a record waits before its fsync starts."""


class Committer:
    """Syncs logs at most once an interval while they have unsynced records."""

    def __init__(
        self, logs: Sequence[AppendLog], interval_s: float = COMMIT_INTERVAL_S
    ) -> None:
        self._logs = tuple(logs)
        self._interval_s = interval_s
        self._dirty = anyio.Event()

    async def run(self) -> None:
        """Serve until cancelled; start it in the task group of the run.

        Raises EvidenceError when a sync fails, which ends the run: a record that
        is not on disk must not be counted as evidence.
        """
        for log in self._logs:
            log.on_dirty = self._wake
        try:
            while True:
                if not any(log.dirty for log in self._logs):
                    self._dirty = anyio.Event()
                    await self._dirty.wait()
                await anyio.sleep(self._interval_s)
                for log in self._logs:
                    if log.dirty:
                        # A thread: fsync blocks for as long as the disk likes, and
                        # the loop must go on serving deadlines. One hop an
                        # interval, not one a record.
                        await anyio.to_thread.run_sync(log.sync)
        finally:
            for log in self._logs:
                log.on_dirty = None

    def _wake(self) -> None:
        self._dirty.set()
