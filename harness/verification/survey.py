"""One pass over a log that reports damage and goes on.

Opening a log for use stops at the first damage; a verification names all of it.
Every line keeps its place, whole or damaged, so that a record's number is its line.
A damaged line stands under no key. Rows that were withheld are entered by what is
left of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection
from typing import Final, Self

from harness.errors import EvidenceError
from harness.evidence.disk import machine_refusals
from harness.evidence.log_line import (
    MAX_LINE_BYTES,
    Entry,
    LineError,
    LogFormat,
    damage,
    decode_line,
)
from harness.evidence.log_reader import LogReader
from harness.regular_file import regular_descriptor
from harness.verification.findings import Findings
from harness.verification.redaction import WithheldEntry, read_withheld
from harness.verification.windows import Window

_NO_KEY: Final = "sha256:" + "0" * 64
_DAMAGED: Final = 7
"""A kind that no log has."""
Visit = Callable[[LogReader, Entry], None]


class SurveyedLog(LogReader):
    """A log with all that can be read of it; a context manager."""

    def __init__(self, window: Window, log: LogFormat, findings: Findings) -> None:
        with machine_refusals("open a log", window.path):
            descriptor = regular_descriptor(window.path)
        super().__init__(window.path, log, descriptor, window.begin)
        self.damaged = 0
        """How many lines are no record, or not the one that belongs there."""
        self.withheld = array("Q")
        """Numbers of the records that were withheld."""
        self._findings = findings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def survey(self, window: Window, visit: Visit) -> None:
        """Read all lines; `visit` sees each sound record before it is entered."""
        expected: int | None = 1
        with window.open() as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                if line.endswith(b"\n"):
                    expected = self._take(line, expected, visit)
                    continue
                too_long = len(line) > MAX_LINE_BYTES
                reason = "the line is too long" if too_long else "the line has no end"
                self._report(len(self) + 1, reason)
                self._skip(line)
                if too_long:
                    return

    def _take(self, line: bytes, expected: int | None, visit: Visit) -> int | None:
        """Enter one line; return the sequence that the next one must have.

        None stands for any: after a damaged line nobody can say how many records it
        took the place of.
        """
        try:
            entry = self._read(line[:-1], self._end)
        except LineError as error:
            self._report(len(self) + 1, str(error))
            self._skip(line)
            return None
        if expected is not None and entry.sequence != expected:
            self._report(len(self) + 1, _out_of_place(entry.sequence, expected))
        try:
            visit(self, entry)
        except EvidenceError as error:
            if not self._is_consequence(error):
                self.damaged += 1
                self._findings.add(error.violations)
                self._skip(line)
                return max(entry.sequence + 1, expected or 1)
        if isinstance(entry, WithheldEntry):
            self.withheld.append(len(self))
        self._enter(line, entry.record_type, entry.key, entry.number, entry.digest)
        return max(entry.sequence + 1, expected or 1)

    def _is_consequence(self, error: EvidenceError) -> bool:
        """Tell whether a record only lacks what a damaged line may have held."""
        return self.damaged > 0 and error.code == self.format.invalid_code

    def _read(self, line: bytes, offset: int) -> Entry:
        try:
            return decode_line(self.format, line, None, offset)
        except LineError:
            left = read_withheld(self.format, line, offset)
            if left is None:
                raise
            return left

    def _decode(self, line: bytes, record: int, offset: int) -> Entry:
        try:
            return self._read(line, offset)
        except LineError as error:
            raise damage(self.format, record + 1, offset, str(error)) from None

    def _report(self, number: int, reason: str) -> None:
        self.damaged += 1
        self._findings.add(damage(self.format, number, self._end, reason).violations)

    def _skip(self, line: bytes) -> None:
        """Give a line its place and no key."""
        self._offsets.append(self._end)
        self._used.append(1)
        self.index.add(_NO_KEY, _DAMAGED, 0)
        self._end += len(line)

    def was_used(self, record: int) -> bool:
        """Tell whether a record was read back."""
        return bool(self._used[record])

    def is_damaged(self, record: int) -> bool:
        """Tell whether a line is no record that can be read."""
        return self.index.record_type(record) == _DAMAGED

    def unused(self, record_types: Collection[str]) -> list[int]:
        """Return the sound records of these types that nobody has read back."""
        names = self.format.record_types
        kinds = {kind for kind, name in enumerate(names) if name in record_types}
        return [
            record
            for record, flag in enumerate(self._used)
            if not flag and self.index.record_type(record) in kinds
        ]


def _out_of_place(sequence: int, expected: int) -> str:
    if sequence == expected + 1:
        return f"record {expected} is missing: this is record {sequence}"
    if sequence > expected:
        missing = f"{expected} to {sequence - 1}"
        return f"records {missing} are missing: this is record {sequence}"
    return f"this is record {sequence}, repeated or moved; {expected} belongs here"


def survey_log(
    window: Window, log: LogFormat, findings: Findings, visit: Visit
) -> SurveyedLog:
    """Open and survey a log; raise EvidenceError when the machine refuses."""
    surveyed = SurveyedLog(window, log, findings)
    try:
        surveyed.survey(window, visit)
        surveyed.forget_use()
    except BaseException:
        surveyed.close()
        raise
    return surveyed
