"""What the machine can refuse: writing whole files and keeping them.

A file appears under its name only when it is complete and on disk: it is written
beside its place, synced, renamed, and the folder is synced. A refusal of the
machine (no space, no rights, read-only) is an EvidenceError that says what failed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import EvidenceError


@contextmanager
def machine_refusals(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError into an EvidenceError (`eval_cli_runtime_failed`)."""
    try:
        yield
    except OSError as error:
        raise machine_refusal(doing, path, error) from error


def machine_refusal(doing: str, path: Path, error: OSError) -> EvidenceError:
    """Return what an OSError means for whoever runs this."""
    return EvidenceError(
        "eval_cli_runtime_failed",
        f"cannot {doing}",
        where=path.name,
        expected="regular files, free space, and rights for this user",
        actual=f"{error.strerror or error} (errno {error.errno})",
        recovery="free space, mend the rights or put the file back, then repeat",
    )


def sync_folder(folder: Path) -> None:
    """Make names that appeared in a folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's bytes survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_beside(path: Path) -> Path:
    """Return the name under which a file is written before it is complete."""
    return path.with_name(f".{path.name}.tmp")


@contextmanager
def discarded_on_failure(temporary: Path) -> Iterator[None]:
    """Remove a half-written temporary when writing it fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def publish_file(temporary: Path, path: Path) -> None:
    """Sync a complete temporary and give it its name."""
    sync_file(temporary)
    temporary.replace(path)
    sync_folder(path.parent)
