"""One run as one portable file.

A bundle is an uncompressed tar archive (POSIX ustar as GNU tar reads it) of regular
files in a fixed order: `bundle.json` first, then the run's files in the order in
which a run writes them, then `aggregates.jsonl`. Every header has mode 0644, owner 0
without names, and time 0; padding is zero bytes; the archive ends with exactly two
zero blocks. So the same run gives the same bytes, and `bundle.json`, whose own hash
it holds, decides every other byte of the file.

`docs/reference/bundle.md` says what is in `bundle.json` and what redaction does.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from harness.canonical import Json, content_hash, hash_bytes, is_content_hash
from harness.errors import ArtifactError
from harness.evidence.artifacts import artifact_bytes
from harness.evidence.disk import machine_refusals
from harness.regular_file import open_regular_file
from harness.strict_json import StrictJsonError, decode_document
from harness.verification.findings import Findings
from harness.verification.windows import Window

FORMAT: Final = "fairtrial-bundle"
VERSION: Final = "1"
HEADER_FILE: Final = "bundle.json"
AGGREGATES_FILE: Final = "aggregates.jsonl"
BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
MAX_HEADER_BYTES: Final = 1 << 24
MEMBER_NAME: Final = re.compile(r"[A-Za-z0-9_]+\.[a-z]+")
BUNDLE_RECOVERY: Final = "bring back an intact copy of the bundle"
_KEYS: Final = frozenset(
    {
        "format",
        "version",
        "eval_run_id",
        "merkle_root",
        "manifest_hash",
        "redaction",
        "withheld_rows",
        "members",
        "bundle_hash",
    }
)


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a bundle."""

    file: str
    size_bytes: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class BundleHeader:
    """What `bundle.json` says."""

    eval_run_id: str
    merkle_root: str
    manifest_hash: str
    redaction: tuple[str, ...]
    withheld_rows: Mapping[str, int]
    members: tuple[Member, ...]

    def payload(self) -> dict[str, Json]:
        """Return the JSON form, closed by the hash over all of it."""
        payload: dict[str, Json] = {
            "format": FORMAT,
            "version": VERSION,
            "eval_run_id": self.eval_run_id,
            "merkle_root": self.merkle_root,
            "manifest_hash": self.manifest_hash,
            "redaction": list(self.redaction),
            "withheld_rows": dict(self.withheld_rows),
            "members": [
                {
                    "file": member.file,
                    "size_bytes": member.size_bytes,
                    "content_hash": member.content_hash,
                }
                for member in self.members
            ],
        }
        return {**payload, "bundle_hash": content_hash(payload)}


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run by name, in a folder or in a bundle."""

    name: str
    """What the folder or the bundle is called."""
    windows: Mapping[str, Window]
    header: BundleHeader | None
    """None for a folder."""

    @property
    def withheld_rows(self) -> Mapping[str, int]:
        """How many rows of which file are digests only, as the bundle says."""
        return {} if self.header is None else self.header.withheld_rows


def folder_files(folder: Path) -> RunFiles:
    """Return the regular files of a run folder; raise EvidenceError."""
    with machine_refusals("look at the run folder", folder):
        found = sorted(path for path in folder.iterdir() if path.is_file())
    return RunFiles(
        folder.resolve().name,
        {path.name: Window.of_file(path) for path in found},
        None,
    )


def member_header(name: str, size_bytes: int) -> bytes:
    """Return the archive's header of one file: 512 bytes that depend on nothing else.

    It is written out here, since the library's own has changed between versions.
    Sizes from 8 GiB on stand in the binary form of GNU tar.
    """
    size = (
        b"%011o\0" % size_bytes
        if size_bytes < 8**11
        else b"\x80" + size_bytes.to_bytes(11, "big")
    )
    before = b"%s0000644\0%s%s%s" % (
        name.encode("ascii").ljust(100, b"\0"),
        b"0000000\0" * 2,
        size,
        b"00000000000\0",
    )
    after = b"0%sustar\x0000%s" % (bytes(100), bytes(64) + b"0000000\0" * 2)
    checksum = sum(before) + sum(after) + 8 * ord(" ")
    return (before + b"%06o\0 " % checksum + after).ljust(BLOCK, b"\0")


def open_bundle(path: Path, findings: Findings) -> RunFiles:
    """Check the frame of a bundle and return its files; their bytes are not read.

    Raises ArtifactError where `bundle.json` cannot be read, since it alone says what
    else is in the file.
    """
    with machine_refusals("read a bundle", path), open_regular_file(path) as stream:
        data = _read_header_file(path, stream)
        header = _decode_header(data)
        _check_header(header, data, findings)
        at = BLOCK + len(data)
        windows = {}
        for member in header.members:
            at = _check_padding(stream, at, member.file, findings)
            expected = member_header(member.file, member.size_bytes)
            if _at(stream, at, BLOCK) != expected:
                findings.differs(
                    f"byte offset {at}",
                    f"the archive's header of {member.file} is not the one it must be",
                    "512 bytes that follow from name and size",
                    "others",
                    BUNDLE_RECOVERY,
                )
            windows[member.file] = Window(path, at + BLOCK, member.size_bytes)
            at += BLOCK + member.size_bytes
        at = _check_padding(stream, at, "the end", findings)
        _check_end(stream, at, findings)
    findings.count("frames of a bundle", len(windows) + 2)
    return RunFiles(path.name, windows, header)


def _at(stream: BinaryIO, offset: int, size_bytes: int) -> bytes:
    stream.seek(offset)
    return stream.read(size_bytes)


def _read_header_file(path: Path, stream: BinaryIO) -> bytes:
    frame = _at(stream, 0, BLOCK)
    digits = frame[124:135]
    size_bytes = int(digits, 8) if re.fullmatch(rb"[0-7]{11}", digits) else 0
    if size_bytes > MAX_HEADER_BYTES or frame != member_header(HEADER_FILE, size_bytes):
        raise _no_bundle(
            f"{path.name}, byte offset 0",
            f"the archive's header of {HEADER_FILE}",
            "other bytes",
        )
    return _at(stream, BLOCK, size_bytes)


def _decode_header(data: bytes) -> BundleHeader:
    try:
        payload = decode_document(data)
        kind = (payload["format"], payload["version"])
        if payload.keys() == _KEYS and kind == (FORMAT, VERSION):
            return _header_of(payload)
        reason = f"{kind} with the keys {sorted(payload)}"
    except (StrictJsonError, LookupError, TypeError, ValueError, AttributeError) as e:
        reason = str(e)
    raise _no_bundle(
        HEADER_FILE, f"what `seal` writes for version {VERSION}", reason[:200]
    )


def _header_of(payload: Json) -> BundleHeader:
    return BundleHeader(
        eval_run_id=str(payload["eval_run_id"]),
        merkle_root=str(payload["merkle_root"]),
        manifest_hash=str(payload["manifest_hash"]),
        redaction=tuple([str(text) for text in payload["redaction"]]),
        withheld_rows={
            str(name): int(rows) for name, rows in payload["withheld_rows"].items()
        },
        members=tuple([_member(member) for member in payload["members"]]),
    )


def _member(payload: Json) -> Member:
    member = Member(payload["file"], payload["size_bytes"], payload["content_hash"])
    sound = (
        isinstance(member.file, str)
        and MEMBER_NAME.fullmatch(member.file)
        and type(member.size_bytes) is int
        and 0 <= member.size_bytes < 1 << 62
        and is_content_hash(member.content_hash)
    )
    if not sound or payload.keys() != {"file", "size_bytes", "content_hash"}:
        raise ValueError(f"no member of a bundle: {str(payload)[:100]}")
    return member


def _check_header(header: BundleHeader, data: bytes, findings: Findings) -> None:
    """Compare `bundle.json` with the one text that its fields give."""
    findings.count("hashes of files")
    if artifact_bytes(header.payload()) != data:
        findings.differs(
            HEADER_FILE,
            "bundle_hash, or the form of the file, does not follow from its fields",
            str(header.payload()["bundle_hash"]),
            hash_bytes(data),
            BUNDLE_RECOVERY,
        )


def _check_padding(stream: BinaryIO, at: int, before: str, findings: Findings) -> int:
    """Check the zero bytes up to the next block and return where it begins."""
    size = -at % BLOCK
    if _at(stream, at, size) != bytes(size):
        findings.differs(
            f"byte offset {at}",
            f"the padding before {before} is not zero bytes",
            f"{size} zero bytes",
            "others",
            BUNDLE_RECOVERY,
        )
    return at + size


def _check_end(stream: BinaryIO, at: int, findings: Findings) -> None:
    size = stream.seek(0, io.SEEK_END)
    if size != at + len(END):
        findings.differs(
            f"byte offset {min(size, at + len(END))}",
            "the bundle does not end where it has to",
            f"{at + len(END)} bytes",
            f"{size} bytes",
            BUNDLE_RECOVERY,
        )
    elif _at(stream, at, len(END)) != END:
        findings.differs(
            f"byte offset {at}",
            "the end of the archive is not two zero blocks",
            f"{len(END)} zero bytes",
            "others",
            BUNDLE_RECOVERY,
        )


def _no_bundle(where: str, expected: str, actual: str) -> ArtifactError:
    return ArtifactError(
        "eval_artifact_invalid",
        "the file cannot be read as a bundle",
        where=where,
        expected=expected,
        actual=actual,
        recovery=BUNDLE_RECOVERY,
    )
