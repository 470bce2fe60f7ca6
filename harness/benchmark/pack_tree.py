"""The files of a pack and their fingerprints.

Every regular file under the pack root counts, README and data alike, because a
backend could read it. Symbolic links are refused. Two algorithms are known by name:
the contract's own unnamed first one (`spec/executable-evaluator.md` 1.10), for
foreign releases, and ours, which frames by file hash and leaves files under the
pack's declared `docs` folder out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmark.problems import Problems
from harness.canonical import content_hash, hash_file
from harness.regular_file import open_regular_file
from harness.strict_json import has_unpaired_surrogate

FINGERPRINT_V1: Final = "bfcl-pack-fingerprint-v1"
FINGERPRINT_OWN: Final = "fairtrial-pack-fingerprint-1"
_IGNORED: Final = frozenset({"__pycache__", ".git", ".ipynb_checkpoints"})
_READ_SIZE: Final = 1 << 16
_DOCUMENT_SUFFIXES: Final = frozenset(
    {".md", ".rst", ".txt", ".png", ".jpg", ".jpeg", ".svg", ".gif"}
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A content hash of a pack and the algorithm that made it."""

    algorithm: str
    value: str


@dataclass(frozen=True, slots=True)
class PackTree:
    """All files of a pack by logical name (`tree/...` or `declared/<role>`)."""

    paths: dict[str, Path]
    files: dict[str, str]
    """Logical name to content hash of the bytes."""
    docs: str | None
    """The declared documentation folder, relative to the root."""

    def docs_files(self) -> dict[str, str]:
        """Return the part of `files` that our fingerprint leaves out."""
        names = inert_names(self.files, self.docs)
        return {name: value for name, value in self.files.items() if name in names}

    def fingerprint(self, algorithm: str = FINGERPRINT_OWN) -> Fingerprint:
        """Return the fingerprint under a named algorithm; ValueError if unknown."""
        if algorithm == FINGERPRINT_V1:
            return Fingerprint(algorithm, fingerprint_v1(self.paths))
        if algorithm == FINGERPRINT_OWN:
            docs = self.docs_files()
            counted = {n: h for n, h in self.files.items() if n not in docs}
            return Fingerprint(
                algorithm, content_hash({"algorithm": algorithm, "files": counted})
            )
        raise ValueError(f"unknown fingerprint algorithm {algorithm!r}")


def inert_names(names: Iterable[str], docs: str | None) -> frozenset[str]:
    """Return the logical names that our fingerprint leaves out.

    Only documents: code or data under the folder still counts, for a backend could
    load it.
    """
    if docs is None:
        return frozenset()
    prefix = f"tree/{docs}/"
    return frozenset(
        name
        for name in names
        if name.startswith(prefix) and Path(name).suffix.lower() in _DOCUMENT_SUFFIXES
    )


def fingerprint_v1(paths: Mapping[str, Path]) -> str:
    """Fold name, NUL, bytes, NUL of every file in name order into one SHA-256."""
    digest = hashlib.sha256()
    for name in sorted(paths):
        digest.update(name.encode("utf-8") + b"\0")
        with open_regular_file(paths[name]) as stream:
            while piece := stream.read(_READ_SIZE):
                digest.update(piece)
        digest.update(b"\0")
    return "sha256:" + digest.hexdigest()


def read_tree(
    root: Path, declared: Mapping[str, Path], docs: str | None, problems: Problems
) -> PackTree:
    """Hash every file under the root and the declared files outside it.

    Symbolic links and special files are reported as problems and not followed.
    """
    paths = tree_paths(root, problems)
    for role, path in declared.items():
        if not path.is_relative_to(root):
            paths[f"declared/{role}"] = path
    files = {name: hash_file(paths[name]) for name in sorted(paths)}
    return PackTree(paths, files, docs)


def tree_paths(root: Path, problems: Problems) -> dict[str, Path]:
    """Return the regular files under the root by logical name."""
    return {f"tree/{name}": root / name for name in tree_names(root, problems)}


def tree_names(root: Path, problems: Problems) -> list[str]:
    """Return the regular files under the root by their path from it.

    Symbolic links and special files are reported as problems and not followed.
    """
    names: list[str] = []
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as entries:
            for entry in sorted(entries, key=_name):
                relative = folder + entry.name
                if has_unpaired_surrogate(relative):
                    problems.add(repr(relative), "a name that is no UTF-8")
                elif entry.is_symlink():
                    problems.add(
                        relative, "a symbolic link; a pack holds plain files only"
                    )
                elif entry.name in _IGNORED:
                    continue
                elif entry.is_dir():
                    pending.append(f"{relative}/")
                elif entry.is_file():
                    names.append(relative)
                else:
                    problems.add(relative, "not a plain file")
    return names


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name
