"""Which folders a pack imports from, and which it may read when confined."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import oracle_workers
from harness.oracle.contracts import PackCode

_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/bin",
    "/usr/bin",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
_TRUST = ("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def import_folders(pack: PackCode) -> list[str]:
    """Return the import path of pack code: its modules' own folders, then the root."""
    folders = [pack.root]
    if pack.backend is not None:
        folders.insert(0, pack.backend.parent)
    if pack.assertions.parent not in folders:
        folders.insert(-1, pack.assertions.parent)
    return list(dict.fromkeys(str(folder) for folder in folders))


def package_folders() -> list[str]:
    """Return the folders of installed packages, which a pack may import."""
    return [path for path in sys.path if Path(path).name in _PACKAGE_FOLDERS]


def readable(pack: PackCode) -> list[str]:
    """Return what confined pack code may read: the pack, the interpreter, libraries."""
    candidates = [str(pack.root), *import_folders(pack), *package_folders()]
    if pack.fixtures is not None:
        candidates.append(str(pack.fixtures))
    return _real([*candidates, *interpreter()])


def interpreter() -> list[str]:
    """Return what any process reads: the interpreter and the system's libraries."""
    folders = sysconfig.get_paths()
    return _real(
        [
            folders["stdlib"],
            folders["platstdlib"],
            str(Path(sys.base_prefix) / "lib"),
            str(Path(sys.base_prefix) / "bin"),
            *_SYSTEM,
        ]
    )


def worker_room() -> str:
    """Return the folder of the workers' own modules."""
    return os.path.realpath(Path(oracle_workers.__file__).parent)


def certificates() -> list[str]:
    """Return where the system keeps the authorities that it trusts."""
    import ssl

    known = ssl.get_default_verify_paths()
    found = [known.openssl_cafile, known.openssl_capath, *_TRUST]
    return _real([path for path in found if path])


def _real(names: list[str]) -> list[str]:
    """Return where the paths lead; what is below another one is left out."""
    found = dict.fromkeys(os.path.realpath(path) for path in names)
    folders = tuple(f"{path.rstrip('/')}/" for path in found)
    return [path for path in found if not path.startswith(folders)]
