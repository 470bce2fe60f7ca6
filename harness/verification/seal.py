"""`seal`: one portable file of a finished run that verifies.

Only a run that verifies is sealed, so a bundle never starts with damage. Files go in
as they are; of a log with withheld rows every other row keeps its bytes. What is
written is hashed on its way and compared with what was verified.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import ArtifactError, EvidenceError, UsageError
from harness.evidence.artifacts import artifact_bytes
from harness.evidence.disk import (
    discarded_on_failure,
    machine_refusals,
    publish_file,
    temporary_beside,
)
from harness.evidence.folder import RunFolder, require_outside
from harness.evidence.log_line import Entry, LogFormat
from harness.evidence.log_scan import LogScan
from harness.evidence.plan_file import PLAN_FILE, PlanFile, task_key
from harness.run.report import aggregate_hashes
from harness.run.score import ScoredCandidate
from harness.verification.bundle import (
    AGGREGATES_FILE,
    BLOCK,
    END,
    HEADER_FILE,
    BundleHeader,
    Member,
    folder_files,
    member_header,
)
from harness.verification.bundle_check import MEMBERS
from harness.verification.evidence import LOGS
from harness.verification.redaction import Redaction, withheld_line
from harness.verification.stated import aggregate_lines
from harness.verification.verify import Extras, Verification, verify
from harness.verification.windows import READ_SIZE, Window

_FORMATS: Final[dict[str, LogFormat]] = {log.file_name: log for log in LOGS.values()}


@dataclass(frozen=True, slots=True)
class Sealed:
    """What was written."""

    header: BundleHeader
    bundle_hash: str
    size_bytes: int
    scored: tuple[ScoredCandidate, ...]

    @property
    def aggregate_hashes(self) -> dict[str, str]:
        """The aggregate hash of each candidate by alias."""
        return aggregate_hashes(self.scored)


def seal_run(
    folder: Path, output: Path, redaction: Redaction, extras: Extras | None
) -> Sealed:
    """Verify a run folder and write its bundle.

    Raises UsageError for an output that exists or a task that the run does not have,
    ArtifactError with all violations for a run that does not verify, EvidenceError
    when the machine refuses.
    """
    if output.exists() or output.is_symlink():
        raise UsageError(
            "eval_output_exists",
            "the output exists already",
            where=str(output),
            expected="a name that is free",
            recovery="choose another --output",
        )
    require_outside(folder, output)
    # Names what is no run folder before anything is read.
    RunFolder(folder).state()
    _check_tasks(folder, redaction)
    verification = verify(folder, extras)
    _require_intact(verification)
    sealing = _Sealing(folder, redaction, verification)
    header = sealing.header()
    size_bytes = _write(output, header, sealing)
    bundle_hash = str(header.payload()["bundle_hash"])
    return Sealed(header, bundle_hash, size_bytes, verification.scored)


def _check_tasks(folder: Path, redaction: Redaction) -> None:
    if not redaction.task_ids:
        return
    with PlanFile.open(folder / PLAN_FILE.file_name) as plan:
        unknown = sorted(redaction.task_ids - set(plan.header.task_ids))
    if unknown:
        raise UsageError(
            "eval_cli_invalid",
            "the run has no such task",
            where="--redact",
            expected="task ids of the run's plan",
            actual=", ".join(unknown),
            recovery="the ids are in the task table and in the plan's first line",
        )


def _require_intact(verification: Verification) -> None:
    if verification.incomplete:
        raise EvidenceError(
            "eval_evidence_invalid",
            "the run cannot be verified here, so it is not sealed",
            where=verification.name,
            expected="the engine for the patterns of its tools",
            recovery="install google-re2",
        )
    if not verification.is_intact:
        raise ArtifactError(
            "eval_artifact_invalid",
            "the run does not verify, so it is not sealed",
            violations=verification.findings.violations,
        )


class _Sealing:
    """The members of one bundle, as often as they are asked for."""

    def __init__(
        self, folder: Path, redaction: Redaction, verification: Verification
    ) -> None:
        self._windows = folder_files(folder).windows
        self._redaction = redaction
        self._verification = verification
        self._withheld: dict[str, int] = {}
        self.files = [
            file for file in MEMBERS if file in self._windows or file == AGGREGATES_FILE
        ]

    def header(self) -> BundleHeader:
        """Read every member once and return the header that describes them."""
        members = tuple(self._member(file) for file in self.files)
        manifest = self._verification.manifest
        return BundleHeader(
            eval_run_id=str(manifest["eval_run_id"]),
            merkle_root=str(manifest["merkle_root"]),
            manifest_hash=str(manifest["manifest_hash"]),
            redaction=tuple(self._redaction.as_list()),
            withheld_rows={file: n for file, n in self._withheld.items() if n},
            members=members,
        )

    def _member(self, file: str) -> Member:
        digest = hashlib.sha256()
        size_bytes = 0
        for piece in self.pieces(file):
            digest.update(piece)
            size_bytes += len(piece)
        return Member(file, size_bytes, "sha256:" + digest.hexdigest())

    def pieces(self, file: str) -> Iterator[bytes]:
        """Yield the bytes of one member."""
        if file == AGGREGATES_FILE:
            scored = self._verification.scored
            yield from aggregate_lines(one.aggregate for one in scored)
        elif file in _FORMATS and (self._redaction.words or self._redaction.task_ids):
            yield from self._rows(file, self._windows[file])
        else:
            with self._windows[file].open() as stream:
                while piece := stream.read(READ_SIZE):
                    yield piece

    def _rows(self, file: str, window: Window) -> Iterator[bytes]:
        keys: set[str] = set()
        self._withheld[file] = 0
        with window.open() as stream:
            for line, entry in LogScan(stream, _FORMATS[file]):
                if self._redaction.covers_kind(entry) or self._is_of_task(entry, keys):
                    self._withheld[file] += 1
                    yield withheld_line(entry)
                else:
                    yield line

    def _is_of_task(self, entry: Entry, keys: set[str]) -> bool:
        """Tell whether a row belongs to a withheld task; remember its key."""
        tasks = self._redaction.task_ids
        if not tasks:
            return False
        if entry.log is PLAN_FILE:
            return entry.key in {task_key(task_id) for task_id in tasks}
        if entry.record_type == "request":
            request = entry.member("request")
            if request["task_id"] in tasks:
                keys.add(entry.key)
        return entry.key in keys


def _write(output: Path, header: BundleHeader, sealing: _Sealing) -> int:
    """Write the archive and return its size."""
    temporary = temporary_beside(output)
    head = artifact_bytes(header.payload())
    with machine_refusals("write a bundle", output), discarded_on_failure(temporary):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as stream:
            stream.write(member_header(HEADER_FILE, len(head)) + head)
            stream.write(bytes(-len(head) % BLOCK))
            for member in header.members:
                stream.write(member_header(member.file, member.size_bytes))
                digest = hashlib.sha256()
                for piece in sealing.pieces(member.file):
                    digest.update(piece)
                    stream.write(piece)
                if "sha256:" + digest.hexdigest() != member.content_hash:
                    raise _changed(member.file)
                stream.write(bytes(-member.size_bytes % BLOCK))
            stream.write(END)
            size_bytes = stream.tell()
        publish_file(temporary, output)
    return size_bytes


def _changed(file: str) -> EvidenceError:
    return EvidenceError(
        "eval_evidence_invalid",
        "a file changed while the run was sealed",
        where=file,
        expected="a finished run that nobody writes",
        recovery="seal it again",
    )
