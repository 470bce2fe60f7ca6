"""What ran: interpreter, platform, dependencies and the evaluator's own source.

Facts are recorded beside a score and enter no identity of it. What cannot be known
here is null.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import unicodedata
from importlib import metadata, util
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file

DEPENDENCIES: Final = (
    "anyio",
    "duckdb",
    "google-re2",
    "httpx",
    "multiprocess",
    "pyarrow",
    "pydantic",
    "pyyaml",
)
_PACKAGES: Final = ("harness", "oracle_workers")


def runtime_facts() -> dict[str, Json]:
    """Return the `runtime` section of a manifest."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": sys.platform,
        "kernel": platform.release() or None,
        "machine": platform.machine() or None,
        "unidata_version": unicodedata.unidata_version,
        "fairtrial": _version("fairtrial"),
        "dependencies": {name: _version(name) for name in DEPENDENCIES},
        "pipeline_git_sha": None,
        "pipeline_git_dirty": None,
        "pipeline_source_hash": source_hash(),
        "dependency_lock_hash": None,
        "worker_image_digest": None,
    }


def source_hash() -> str | None:
    """Return the hash over the evaluator's own modules; None if they are no files.

    It covers `<package>/<path>` and the content hash of every `.py` file, sorted.
    """
    digest = hashlib.sha256()
    for package in _PACKAGES:
        spec = util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            return None
        root = Path(spec.submodule_search_locations[0])
        for path in sorted(root.rglob("*.py")):
            name = f"{package}/{path.relative_to(root).as_posix()}"
            digest.update(f"{name}\0{hash_file(path)}\n".encode())
    return "sha256:" + digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
