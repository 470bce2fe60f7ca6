"""An output folder that appears with everything in it or not at all.

The files are written beside their place and synced; the folder then gets its name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError
from harness.evidence.disk import sync_folder


def require_absent(output: Path) -> None:
    """Raise UsageError (`eval_output_exists`) where anything has that name."""
    if os.path.lexists(output):
        raise UsageError(
            "eval_output_exists",
            "the output exists already",
            where=str(output),
            expected="a name that nothing has",
            actual="something of that name",
            recovery="choose another --output; nothing is overwritten",
        )


@contextmanager
def new_folder(output: Path) -> Iterator[Path]:
    """Give a folder to write into; it becomes `output` if the block succeeds.

    Raises UsageError (`eval_output_exists`) where anything has that name.
    """
    require_absent(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        yield stage
        for path in stage.iterdir():
            _sync(path)
        stage.chmod(0o755)
        sync_folder(stage)
        require_absent(output)
        stage.rename(output)
        sync_folder(output.parent)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
