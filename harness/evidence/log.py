"""Append-only logs: what happened, one hashed record a line.

A record is handed to the kernel whole, in one write; a killed process loses none.
`sync` makes the records survive a power loss. Opening reads the file once, from
front to back, and verifies every line; `log_reader` says what stays in memory. At
the end `content_hash` refuses a written log that somebody else has changed.

An unterminated last line is what a killed or full machine leaves: it is moved to
`<log>.torn-<n>`, the log is cut before it, and `torn` says so. Opened read-only,
the tail is reported and left alone. Any other damage is refused with the record
and the byte offset. A power loss that leaves garbage between whole lines counts as
such damage.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from harness.canonical import Json, canonical_bytes
from harness.errors import EvidenceError
from harness.evidence.disk import machine_refusal, machine_refusals, sync_folder
from harness.evidence.key_index import MAX_NUMBER
from harness.evidence.log_line import (
    MAX_LINE_BYTES,
    MAX_PAYLOAD_DEPTH,
    Entry,
    LogFormat,
    damage,
    encode_line,
)
from harness.evidence.log_reader import LogReader, TornTail
from harness.evidence.log_scan import LogScan
from harness.strict_json import StrictJsonError, decode_document

if TYPE_CHECKING:
    from _hashlib import HASH

_READ_SIZE: Final = 1 << 16


class AppendLog(LogReader):
    """An open log; a context manager that syncs and closes."""

    def __init__(self, path: Path, log: LogFormat, descriptor: int) -> None:
        super().__init__(path, log, descriptor)
        self.fsync_count = 0
        self.bytes_written = 0
        self.on_dirty: Callable[[], None] | None = None
        """Called when the first record after a sync is written."""
        self._writable = False
        self._broken: str | None = None
        self._synced = 0
        self._passed: HASH | None = None
        """The digest of all bytes that were read or written here, if it is kept."""

    @classmethod
    def open(
        cls,
        path: Path,
        log: LogFormat,
        *,
        writable: bool,
        guarded: bool = False,
        visit: Callable[[AppendLog, Entry], None] | None = None,
    ) -> Self:
        """Open and verify a log; create it (mode 0600) when it is to be written.

        `visit` sees every record in order, before it is entered into the index.
        `guarded` holds a log that is only read to its bytes, as one that is written
        always is (`content_hash`).
        Raises EvidenceError: damage, `eval_run_in_use` when another process writes
        it, `eval_cli_runtime_failed` when the machine refuses.
        """
        flags = os.O_CLOEXEC | os.O_NONBLOCK
        # Only a log that is written has to be the folder's own and no link.
        writing = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        flags |= writing if writable else os.O_RDONLY
        with machine_refusals("open a log", path):
            opened = cls(path, log, os.open(path, flags, 0o600))
        opened._passed = sha256() if writable or guarded else None
        try:
            with machine_refusals("open a log", path):
                opened._start(visit, writable=writable)
        except BaseException:
            os.close(opened._descriptor)
            raise
        return opened

    def _start(
        self, visit: Callable[[AppendLog, Entry], None] | None, *, writable: bool
    ) -> None:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            raise damage(self.format, 1, 0, "it is not a regular file")
        if writable:
            self._claim()
        torn_bytes = self._load(visit)
        if torn_bytes:
            self.torn = TornTail(self._end, torn_bytes, None)
            if writable:
                self.torn = TornTail(self._end, torn_bytes, self._move_tail())
        if writable:
            sync_folder(self.path.parent)
        self._synced = self._end
        self._writable = writable

    def _claim(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EvidenceError(
                "eval_run_in_use",
                "another process is writing this log",
                where=self.path.name,
                recovery="wait for the other run, or choose another output folder",
            ) from None

    def _load(self, visit: Callable[[AppendLog, Entry], None] | None) -> int:
        with open(self._descriptor, "rb", _READ_SIZE, closefd=False) as stream:
            scan = LogScan(stream, self.format)
            for line, entry in scan:
                if visit is not None:
                    visit(self, entry)
                if self._passed is not None:
                    self._passed.update(line)
                self._enter(
                    line, entry.record_type, entry.key, entry.number, entry.digest
                )
        return scan.torn_bytes

    def _move_tail(self) -> str:
        number = 1
        while (place := self._torn_path(number)).exists():
            number += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(place, flags, 0o600), "wb") as stream:
                offset = self._end
                while piece := os.pread(self._descriptor, _READ_SIZE, offset):
                    stream.write(piece)
                    offset += len(piece)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            # Half a copy would pass for the tail that the log still holds.
            place.unlink(missing_ok=True)
            raise
        os.ftruncate(self._descriptor, self._end)
        os.fsync(self._descriptor)
        return place.name

    def _torn_path(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.torn-{number}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def dirty(self) -> bool:
        """Whether records were written that a power loss could take."""
        return self._synced < self._end

    @property
    def content_hash(self) -> str:
        """The hash of the file's whole records, read again to where they end.

        Raises EvidenceError where a guarded log is not what passed through here, or
        no longer stands in its place.
        """
        found = super().content_hash
        if self._passed is None:
            return found
        if found != "sha256:" + self._passed.hexdigest():
            for _ in self.entries():  # The first that was changed is named.
                continue
            raise self._changed("a record was replaced by another whole one")
        with machine_refusals("find a log again", self.path):
            found_file = self.path.stat()
        if not os.path.samestat(found_file, os.fstat(self._descriptor)):
            raise self._changed("another file has its name")
        if found_file.st_size != self._end:
            raise self._changed(
                f"it has {found_file.st_size} bytes, and had {self._end}"
            )
        return found

    def append(
        self,
        record_type: str,
        key: str,
        payload: Json | bytes,
        number: int | None = None,
    ) -> int:
        """Write one record whole and return its record number.

        `payload` is a JSON value, or canonical JSON as bytes. Raises EvidenceError:
        `eval_evidence_invalid` for what JSON cannot hold (NaN, a lone surrogate),
        `eval_cli_runtime_failed` when the machine refuses; the log then ends where
        it ended before.
        """
        if number is not None and not 0 <= number <= MAX_NUMBER:
            raise self._unfit(f"number {number} is outside 0 to {MAX_NUMBER}")
        data = payload if isinstance(payload, bytes) else self.encode(payload)
        sequence = len(self._offsets) + 1
        line, digest = encode_line(
            self.format,
            sequence=sequence,
            record_type=record_type,
            key=key,
            number=number,
            payload=data,
        )
        if len(line) > MAX_LINE_BYTES:
            raise self._unfit(f"{len(line)} bytes are more than {MAX_LINE_BYTES}")
        was_dirty = self.dirty
        self._write(line)
        if self._passed is not None:
            self._passed.update(line)
        self._enter(line, record_type, key, number, digest)
        if not was_dirty and self.on_dirty is not None:
            self.on_dirty()
        return sequence - 1

    def encode(self, payload: Json) -> bytes:
        """Return the canonical bytes of a payload that `append` would write."""
        try:
            data = canonical_bytes(payload)
            if data.count(b"[") + data.count(b"{") > MAX_PAYLOAD_DEPTH:
                decode_document(data, max_depth=MAX_PAYLOAD_DEPTH)
        except (ValueError, TypeError, RecursionError) as error:
            code = error.code if isinstance(error, StrictJsonError) else ""
            raise self._unfit(f"{code} {error}".strip()) from None
        return data

    def _unfit(self, reason: str) -> EvidenceError:
        return EvidenceError(
            "eval_evidence_invalid",
            "a record cannot be written as strict JSON",
            where=f"{self.format.file_name}, record {len(self._offsets) + 1}",
            expected="JSON values: finite numbers, text that UTF-8 can hold",
            actual=reason,
            recovery="report this as a defect; nothing was written",
        )

    def _write(self, line: bytes) -> None:
        try:
            self._write_whole(line)
        except OSError as error:
            raise machine_refusal("append to a log", self.path, error) from error
        self.bytes_written += len(line)

    def _write_whole(self, line: bytes) -> None:
        if not self._writable or self._broken is not None:
            reason = self._broken or "the log is open for reading only"
            raise OSError(errno.EBADF, reason)
        size = os.fstat(self._descriptor).st_size
        if size != self._end:
            raise self._changed(f"it has {size} bytes, and had {self._end}")
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):
                written += os.write(self._descriptor, memoryview(line)[written:])
        except BaseException:
            self._take_back()
            raise

    def _take_back(self) -> None:
        """Cut a half-written record off, so that the log ends where it did."""
        try:
            os.ftruncate(self._descriptor, self._end)
        except OSError as error:
            self._broken = f"a half-written record could not be cut off: {error}"

    def _changed(self, reason: str) -> EvidenceError:
        return damage(
            self.format,
            len(self._offsets) + 1,
            self._end,
            f"the file changed while it was open: {reason}",
        )

    def sync(self) -> None:
        """Make all records written so far survive a power loss.

        Safe to call from another thread than the writer's.
        """
        target = self._end
        if target == self._synced:
            return
        with machine_refusals("sync a log", self.path):
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                # The kernel may drop what it failed to write, so nothing that
                # follows could be trusted to stand on it.
                self._broken = f"an earlier sync failed: {error}"
                raise
        self.fsync_count += 1
        self._synced = max(self._synced, target)

    def close(self) -> None:
        """Sync what was written and close; closing twice is allowed."""
        if self._descriptor < 0:
            return
        try:
            if self._writable and self._broken is None:
                self.sync()
        finally:
            super().close()
            if self._writable:
                self._forget()
