"""Hashes as the prediction contracts write them: 64 hex digits, no prefix.

A hash that was declared beforehand is compared before anything of the file is read
into the program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from harness.canonical import hash_file
from harness.errors import SourceError, Violation

_SHA256: Final = re.compile("[0-9a-f]{64}")


def is_sha256(text: object) -> bool:
    """Tell whether the value is 64 lower-case hex digits."""
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits."""
    return hash_file(path).removeprefix("sha256:")


def require_sha256(path: Path, declared: str, *, by: str) -> str:
    """Return the file's hash; `by` says who declared it.

    Raises SourceError (`eval_predictions_drift`) where it is another one.
    """
    found = file_sha256(path)
    if found != declared:
        raise SourceError(
            "eval_predictions_drift",
            f"{path.name} is not the file whose hash {by} declares",
            where=str(path),
            expected=declared,
            actual=found,
            recovery="bring back the declared file, or declare the hash of this one",
        )
    return found


def verify_checkpoint(folder: Path, declared: Mapping[str, str]) -> None:
    """Compare every declared file of a checkpoint before anything of it is loaded.

    Raises SourceError (`eval_predictions_drift`) with all files that are absent,
    changed or named outside the folder, and for a checkpoint that declares none.
    """
    problems = [
        problem
        for name, sha256 in sorted(declared.items())
        for problem in _checkpoint_problems(folder, name, sha256)
    ]
    if not declared:
        problems = [_drift(folder, "no file is declared", "", "")]
    if problems:
        raise SourceError.from_violations(tuple(problems))


def _checkpoint_problems(folder: Path, name: str, sha256: str) -> list[Violation]:
    steps = PurePosixPath(name)
    if steps.is_absolute() or ".." in steps.parts or not steps.parts:
        return [_drift(folder, f"{name!r} lies outside the checkpoint", "", "")]
    path = folder / steps
    if not path.is_file():
        return [_drift(path, "a declared checkpoint file is absent", sha256, "no file")]
    found = file_sha256(path)
    if found != sha256:
        return [_drift(path, "a checkpoint file has changed", sha256, found)]
    return []


def _drift(path: Path, problem: str, expected: str, actual: str) -> Violation:
    return Violation(
        "eval_predictions_drift",
        str(path),
        problem,
        expected,
        actual,
        "use the checkpoint that the receipt is about",
    )
