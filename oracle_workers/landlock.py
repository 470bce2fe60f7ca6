"""File rules by Landlock: an allow-list of folders, everything else unreachable.

Rules only narrow: a worker's own rules meet those of its host. From ABI 4 TCP is
refused as well, from ABI 6 signals and abstract sockets reach no process outside.
"""

from __future__ import annotations

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


class FileRules:
    """An allow-list that lacks one folder yet: the one that may be written.

    All folders are opened and all rules packed once, for the many processes that
    narrow themselves to one folder each. From ABI 4 these connect by TCP to
    `tcp_ports` alone.
    """

    def __init__(self, readable: list[str], tcp_ports: tuple[int, ...] = ()) -> None:
        """Open what may be read; raise LandlockError where there is no Landlock."""
        version = abi()
        if version < 1:
            raise LandlockError(
                "the kernel has no Landlock (Linux 5.13 with it enabled)"
            )
        handled = (
            _HANDLED_BY_ABI.get(min(version, 3), 0) if version < 5 else _HANDLED_FROM_5
        )
        network = _NET_BIND_AND_CONNECT if version >= 4 else 0
        scope = _SCOPE_SOCKETS_AND_SIGNALS if version >= 6 else 0
        size = 8 if version < 4 else 16 if version < 6 else 24
        self._attributes = struct.pack("=QQQ", handled, network, scope)[:size]
        self._folder_rights = handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK)
        self._targets: list[int] = []
        self._rules: list[tuple[int, bytes]] = []
        self.applied = {"abi": version, "tcp": bool(network), "scope": bool(scope)}
        try:
            for path in readable:
                self._allow(path, _READ_ONLY)
            for path in _DEVICES:
                self._allow(path, _READ_FILE | _WRITE_FILE)
        except OSError as error:
            raise LandlockError(str(error)) from None
        for port in tcp_ports if network else ():
            rule = struct.pack("=QQ", _NET_CONNECT, port)
            self._rules.append((_RULE_NET_PORT, rule))

    def restrict(self, writable: str | None) -> dict[str, Any]:
        """Leave this process what may be read, a few devices and `writable`.

        Returns what was applied; raises LandlockError.
        """
        try:
            if writable is not None:
                target = os.open(writable, os.O_PATH | os.O_CLOEXEC)
                self._targets.append(target)
                rule = _beneath(self._folder_rights, target)
                _apply(self._attributes, [*self._rules, (_RULE_PATH_BENEATH, rule)])
            else:
                _apply(self._attributes, self._rules)
        except OSError as error:
            raise LandlockError(str(error)) from None
        return self.applied

    def close(self) -> None:
        """Close the folders; rules that were applied stay."""
        for target in self._targets:
            os.close(target)

    def _allow(self, path: str, rights: int) -> None:
        try:
            target = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        self._targets.append(target)
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _FILE_RIGHTS
        self._rules.append((_RULE_PATH_BENEATH, _beneath(rights, target)))


def restrict(
    readable: list[str], writable: str | None, tcp_ports: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Leave this process only `readable`, a few devices and the folder `writable`.

    From ABI 4 it connects by TCP to `tcp_ports` alone. Returns what was applied;
    raises LandlockError.
    """
    rules = FileRules(readable, tcp_ports)
    try:
        return rules.restrict(writable)
    finally:
        rules.close()


def _apply(attributes: bytes, rules: list[tuple[int, bytes]]) -> None:
    call = syscalls.call_quickly
    ruleset = call("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        for kind, rule in rules:
            call("landlock_add_rule", ruleset, kind, rule, 0)
        call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _beneath(rights: int, target: int) -> bytes:
    return struct.pack("=Qi", rights, target)
