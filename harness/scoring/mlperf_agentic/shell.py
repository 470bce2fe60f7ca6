"""What a command runs, by the contract's own small reading of a shell.

Quoted spans become a space, the rest is cut into stages at `||`, `|`, `&&`, `;` and
line feeds, and the first word of a stage that is neither an assignment nor a wrapper
is its executable. Nothing else of a shell is understood: comments, heredoc bodies,
groups and substitutions are read like any other text. The time is linear in the
command's length, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.scoring.mlperf_agentic.aliases import WRAPPERS

_QUOTED: Final = re.compile(
    # A backslash takes any character with it but a line feed; a span with a
    # backslash before a line feed is therefore no span at all.
    r"""'[^']*'|"[^"\\]*(?:\\.[^"\\]*)*"|`[^`]*`"""
)
_OPENING: Final = re.compile("['\"`]")
_PLAIN_OR_ESCAPE: Final = re.compile(r'[^"\\]*(?:\\.)?')
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_LONG: Final = 4096
"""Characters from which a search that may go over the text again is not used."""


def without_quoted(command: str) -> str:
    """Return the command with every quoted span replaced by one space."""
    if "'" not in command and '"' not in command and "`" not in command:
        return command
    if len(command) > _LONG and '\\"' in command:
        return _without_quoted_once(command)
    return _QUOTED.sub(" ", command)


def executables(command: str) -> Iterator[str | None]:
    """Yield the executable of each stage that is not blank, None where it has none."""
    text = without_quoted(command)
    # An empty stage counts for nothing, so `||` may be cut twice.
    text = text.replace("&&", "\n").replace("|", "\n").replace(";", "\n")
    for stage in text.split("\n"):
        words = stage.split(None, 1)
        if not words:
            continue
        first = words[0]
        if _is_leading(first):
            yield next((word for word in stage.split() if not _is_leading(word)), None)
        else:
            yield first


def _is_leading(word: str) -> bool:
    """Tell whether the word stands before an executable without being one."""
    return word in WRAPPERS or ("=" in word and _ASSIGNMENT.match(word) is not None)


def _without_quoted_once(command: str) -> str:
    """Do as `without_quoted`, remembering where no double quote can close.

    An unclosed quote before many escaped ones makes the plain search start over at
    each of them.
    """
    pieces: list[str] = []
    hopeless = bytearray(len(command) + 1)
    kept = position = 0
    while (opening := _OPENING.search(command, position)) is not None:
        start = opening.start()
        if opening[0] == '"':
            end = _closing(command, start + 1, hopeless)
        else:
            end = command.find(opening[0], start + 1)
        if end < 0:
            position = start + 1
            continue
        pieces += (command[kept:start], " ")
        kept = position = end + 1
    return "".join((*pieces, command[kept:]))


def _closing(command: str, position: int, hopeless: bytearray) -> int:
    """Return where a double quote closes that was open at `position`, -1 if never."""
    visited = []
    while not hopeless[position]:
        visited.append(position)
        step = _PLAIN_OR_ESCAPE.match(command, position)
        end = position if step is None else step.end()
        if end < len(command) and command[end] == '"':
            # The step may have ended in an escape, then this quote is a bare one.
            return end
        if end == position or end == len(command):
            break
        position = end
    for place in visited:
        hopeless[place] = 1
    return -1
