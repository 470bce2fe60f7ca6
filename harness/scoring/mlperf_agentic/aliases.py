"""From a word in command position to the name under which it is compared.

The table is closed: a word that it does not lead to counts for nothing, on either
side. It is part of the contract's identity, so a change of one entry is a change of
the contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_RENAMED: Final = {
    "apt": ("apt-get",),
    "awk": ("gawk",),
    "cat": ("less", "more"),
    "curl": ("wget",),
    "find": ("locate",),
    "grep": ("egrep", "fgrep", "rg", "ag"),
    "pip": ("pip3",),
    "python": ("python2", "python3", "py"),
    "source": (".",),
}
_ONLY_RENAMED: Final = {"sphinx": ("sphinx-build", "sphinx-quickstart")}
"""A name that is no executable of its own, so it is not its own alias."""
_AS_WRITTEN: Final = (
    "alias conda cp cut cython date diff export false git head ls make mkdir mv "
    "pylint pytest rm sed sort tail tee timeout touch tr true uniq unset wc which "
    "xargs yum"
)

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in (*_AS_WRITTEN.split(), *_RENAMED)}
    | {
        alias: name
        for name, aliases in (_RENAMED | _ONLY_RENAMED).items()
        for alias in aliases
    }
)
"""Every known executable with the name that it is compared under."""
WRAPPERS: Final = frozenset({"command", "env", "exec", "nice", "sudo", "time"})
"""Words that run the command after them; only in exactly this spelling."""

_VERSION: Final = re.compile(r"\.\d+(?:\.\d+)?$")
_KNOWN: Final = dict(ALIASES)


def canonical_action(word: str) -> str | None:
    """Return the compared name of the executable that `word` names, if any.

    What follows the last slash counts, in lower case, without one version group.
    """
    known = _KNOWN.get(word)
    if known is not None:
        return known
    name = word[word.rfind("/") + 1 :].lower()
    # The version's digits are those of any script, as `\d` has them.
    if name[-1:].isdecimal():
        name = _VERSION.sub("", name)
    return _KNOWN.get(name)
