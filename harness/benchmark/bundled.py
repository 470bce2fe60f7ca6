"""Packs and configs that come with fairtrial, and how a pack is named.

In an installed copy they lie under `harness/_bundled`, in a checkout at the top.
"""

from __future__ import annotations

from pathlib import Path

from harness.benchmark.pack import MANIFEST_NAME
from harness.errors import PackError, UsageError

_PACKAGE = Path(__file__).resolve().parent.parent


def _folder(kind: str) -> Path:
    installed = _PACKAGE / "_bundled" / kind
    return installed if installed.is_dir() else _PACKAGE.parent / kind


def bundled_names() -> tuple[str, ...]:
    """Return the names of the bundled packs."""
    folder = _folder("packs")
    if not folder.is_dir():
        return ()
    return tuple(
        sorted(p.name for p in folder.iterdir() if (p / MANIFEST_NAME).is_file())
    )


def bundled_pack(name: str) -> Path:
    """Return the folder of a bundled pack; raise PackError for an unknown name."""
    if name in bundled_names():
        return _folder("packs") / name
    raise _unknown(name)


def resolve_pack(text: str) -> Path:
    """Return the pack folder of a command-line word: a path, or a bundled name.

    A folder that is no pack, a benchmark for one, does not hide a bundled name.
    """
    path = Path(text)
    is_bundled = text in bundled_names()
    if is_bundled and not (path / MANIFEST_NAME).exists():
        return bundled_pack(text)
    if path.exists():
        return path
    raise _unknown(text)


def bundled_config(name: str) -> Path:
    """Return a bundled config or contract document; raise UsageError if unknown."""
    path = _folder("configs") / name
    if Path(name).name == name and path.is_file():
        return path
    raise UsageError(
        "eval_cli_invalid",
        f"there is no bundled config {name!r}",
        where=name,
        recovery="name a file of your own",
    )


def _unknown(name: str) -> PackError:
    return PackError(
        "pack_invalid",
        "there is no such pack",
        where=name,
        expected=f"a folder, or one of {', '.join(bundled_names())}",
        recovery="`fairtrial pack init DIR` starts a pack",
    )
