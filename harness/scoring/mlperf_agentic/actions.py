"""The actions of a turn: what its bash calls run, in order.

A call counts when its entry's `function` is an object named exactly `bash` whose
arguments lead to a command text. Any other entry is no business of this contract; a
bash call without a usable command is skipped under a name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.canonical import Json
from harness.scoring.mlperf_agentic.aliases import canonical_action
from harness.scoring.mlperf_agentic.python_json import (
    IntegerTooLongError,
    NotJsonError,
    TooDeepError,
    decode_arguments,
)
from harness.scoring.mlperf_agentic.shell import executables
from harness.scoring.mlperf_agentic.skips import CallSkip

TOOL_NAME: Final = "bash"
COMMAND_KEYS: Final = ("command", "cmd")
"""The first truthy one counts."""


class Actions(NamedTuple):
    """The compared names of a turn in order, and what they were found in."""

    names: tuple[str, ...]
    stages: int
    """Stages of all commands that are not blank; each gives one name or none."""
    skips: tuple[CallSkip, ...] = ()


NO_ACTIONS: Final = Actions((), 0)


def bash_actions(tool_calls: Json) -> Actions:
    """Return the actions of a turn's `tool_calls`; whatever is no list has none."""
    if not isinstance(tool_calls, list | tuple):
        return NO_ACTIONS
    names: list[str] = []
    skips: list[CallSkip] = []
    stages = 0
    for entry in tool_calls:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict) or function.get("name") != TOOL_NAME:
            continue
        command = _command(function.get("arguments"))
        if isinstance(command, CallSkip):
            skips.append(command)
            continue
        for executable in executables(command):
            stages += 1
            name = canonical_action(executable) if executable else None
            if name is not None:
                names.append(name)
    return Actions(tuple(names), stages, tuple(skips))


def _command(arguments: Json) -> str | CallSkip:
    if isinstance(arguments, str):
        try:
            arguments = decode_arguments(arguments)
        except NotJsonError:
            return CallSkip.ARGUMENTS_NOT_JSON
        except IntegerTooLongError:
            return CallSkip.ARGUMENTS_INTEGER_TOO_LONG
        except TooDeepError:
            return CallSkip.ARGUMENTS_TOO_DEEP
    if not isinstance(arguments, dict):
        return CallSkip.ARGUMENTS_NOT_OBJECT
    preferred, fallback = COMMAND_KEYS
    command = arguments.get(preferred) or arguments.get(fallback)
    # CallSkip is text too; a command decoded from JSON never is one.
    return command if isinstance(command, str) else CallSkip.COMMAND_NOT_TEXT
