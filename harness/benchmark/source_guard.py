"""Holds the files of a verified source to what they were when they were verified.

Verification and use are apart in time, and that gap is where a source gets replaced.
The full check hashes every file again; the cheap one looks at inode, size and times,
for use while a run goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.benchmark.pack_tree import inert_names, tree_names
from harness.benchmark.problems import Problems
from harness.canonical import hash_file
from harness.errors import SourceError


class FileStat(NamedTuple):
    """What a change of a file cannot leave alone."""

    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


def file_stat(path: Path) -> FileStat | None:
    """Return the stat of a file itself, None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return FileStat(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def snapshot(paths: Iterable[Path]) -> dict[Path, FileStat | None]:
    """Return the stats of files; take it before they are hashed."""
    return {path: file_stat(path) for path in paths}


def counted_names(names: Collection[str], docs: str | None) -> frozenset[str]:
    """Return the logical names under a pack root that its fingerprint counts."""
    under_root = frozenset(name for name in names if name.startswith("tree/"))
    return under_root - inert_names(names, docs)


@dataclass(frozen=True, slots=True)
class GuardedFile:
    """One file of the source under the name that messages use."""

    name: str
    path: Path
    content_hash: str
    stat: FileStat | None


@dataclass(frozen=True, slots=True)
class SourceGuard:
    """All files of one verified source."""

    files: tuple[GuardedFile, ...]
    pack_root: Path | None
    pack_names: frozenset[str]
    """Logical names of the files under the pack root that count."""
    pack_docs: str | None
    """The declared folder of documents, which do not count."""

    def assert_unchanged(self) -> None:
        """Hash every file again; raise SourceError for the first that differs."""
        self._check_names()
        for file in self.files:
            try:
                actual = hash_file(file.path)
            except OSError as error:
                actual = error.strerror or "unreadable"
            if file.path.is_symlink() or actual != file.content_hash:
                raise _changed(file.name, file.content_hash, actual)

    def assert_stat_unchanged(self) -> None:
        """Look at every file's stat; raise SourceError for the first that differs."""
        self._check_names()
        for file in self.files:
            found = file_stat(file.path)
            if found != file.stat:
                raise _changed(file.name, str(file.stat), str(found))

    def _check_names(self) -> None:
        if self.pack_root is None:
            return
        problems = Problems()
        try:
            found = [f"tree/{name}" for name in tree_names(self.pack_root, problems)]
        except OSError as error:
            raise _changed(
                "the pack", "the pack's files", str(error.strerror)
            ) from None
        other = sorted(self.pack_names ^ counted_names(found, self.pack_docs))
        if other or problems.violations:
            shown = other or [problems.violations[0].where]
            raise _changed("the pack", "the same files", f"other: {shown[:5]}")


def _changed(name: str, expected: str, actual: str) -> SourceError:
    return SourceError(
        "eval_source_changed_during_eval",
        "the source changed after it was verified",
        where=name,
        expected=expected,
        actual=actual,
        recovery="bring the source back as it was, or start a new run with the new one",
    )
