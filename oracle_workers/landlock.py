"""File rules by Landlock: an allow-list of folders, everything else unreachable.

Rules only narrow: a worker's own rules meet those of its host. From ABI 4 TCP is
refused as well, from ABI 6 signals and abstract sockets reach no process outside.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from typing import Any

from oracle_workers import syscalls

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_TRUNCATE = 1 << 14
_ABI_OF_TRUNCATE = 3

_HANDLED_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_HANDLED_FROM_5 = (1 << 16) - 1
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ_ONLY = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_NET_BIND_AND_CONNECT = 3
_SCOPE_SOCKETS_AND_SIGNALS = 3
_QUERY_VERSION = 1
_RULE_PATH_BENEATH = 1
_RULE_NET_PORT = 2
_NET_CONNECT = 2


class LandlockError(Exception):
    """Landlock is not to be had; the text says why."""


def abi() -> int:
    """Return the kernel's Landlock version, 0 where there is none."""
    try:
        return syscalls.call("landlock_create_ruleset", 0, 0, _QUERY_VERSION)
    except OSError:
        return 0


def left_open() -> tuple[str, ...]:
    """Name the system calls that this kernel's file rules do not cover yet."""
    return () if abi() >= _ABI_OF_TRUNCATE else ("truncate",)


def restrict(
    readable: list[str], writable: str | None, tcp_ports: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Leave this process only `readable`, a few devices and the folder `writable`.

    From ABI 4 it connects by TCP to `tcp_ports` alone. Returns what was applied;
    raises LandlockError.
    """
    version = abi()
    if version < 1:
        raise LandlockError("the kernel has no Landlock (Linux 5.13 with it enabled)")
    handled = (
        _HANDLED_BY_ABI.get(min(version, 3), 0) if version < 5 else _HANDLED_FROM_5
    )
    network = _NET_BIND_AND_CONNECT if version >= 4 else 0
    scope = _SCOPE_SOCKETS_AND_SIGNALS if version >= 6 else 0
    try:
        ruleset = _create(version, handled, network, scope)
        try:
            for path in readable:
                _allow(ruleset, path, _READ_ONLY)
            for path in _DEVICES:
                _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
            if writable is not None:
                rights = handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK)
                _allow(ruleset, writable, rights)
            for port in tcp_ports if network else ():
                _allow_port(ruleset, port)
            syscalls.call("landlock_restrict_self", ruleset, 0)
        finally:
            os.close(ruleset)
    except OSError as error:
        raise LandlockError(str(error)) from None
    return {"abi": version, "tcp": bool(network), "scope": bool(scope)}


def _create(version: int, handled: int, network: int, scope: int) -> int:
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", handled, network, scope)[:size]
    return syscalls.call("landlock_create_ruleset", attributes, size, 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, target))
        syscalls.call("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(target)


def _allow_port(ruleset: int, port: int) -> None:
    rule = ctypes.create_string_buffer(struct.pack("=QQ", _NET_CONNECT, port))
    syscalls.call("landlock_add_rule", ruleset, _RULE_NET_PORT, rule, 0)
