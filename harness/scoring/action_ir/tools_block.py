"""The TOOLS block of a prompt, read back into tools.

The block is the text after the first `TOOLS` between two line feeds, up to the first
`<user>` between two further ones, or to the end of the prompt. A line is
`name(argument:type!, ...): description`; `!` marks a required argument and the
description is anything up to the end of the line. A line ends at any line boundary of
Unicode, and the last `): ` of a line closes the arguments, so a description can break
its own line. Such a block is refused, never guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from harness.canonical import canonical_bytes
from harness.scoring.action_ir.refusal import ActionIrError
from harness.scoring.action_ir.tools import Tool, ToolSet, ValueSchema

_BEGIN: Final = "\nTOOLS\n"
_END: Final = "\n<user>\n"
_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
_LINE: Final = re.compile(rf"({_NAME})\((.*)\): (?:.*)", re.DOTALL)
_ARGUMENT: Final = re.compile(rf"({_NAME}):(string|integer|number|boolean)(!?)")


class ToolsBlockReader:
    """Reads TOOLS blocks and keeps every tool line that it has read.

    One line means one tool whatever stands around it, so equal lines of many rows
    share one Tool. The cache grows with the distinct lines.
    """

    def __init__(self) -> None:
        self._lines: dict[str, Tool] = {}

    def read(self, prompt: str) -> ToolSet:
        """Return the tools of a prompt; raise ActionIrError."""
        tools: dict[str, Tool] = {}
        for line in _block_lines(prompt):
            tool = self._lines.get(line)
            if tool is None:
                tool = self._lines[line] = _tool(line)
            if tool.name in tools:
                raise ActionIrError(
                    "duplicate_tool",
                    "a tool stands twice in one TOOLS block",
                    actual=repr(line),
                )
            tools[tool.name] = tool
        return ToolSet(tools.values())


def schema_signature(tools: Mapping[str, Tool]) -> str:
    """Return 64 hex digits that name what the tools take, in whatever order they stand.

    Descriptions, side effects and nested schemas do not enter.
    """
    listed = [
        {
            "name": tool.name,
            "arguments": [
                {"name": name, "required": name in tool.required, "type": schema.type}
                for name, schema in sorted(tool.arguments.items())
            ],
        }
        for _, tool in sorted(tools.items())
    ]
    return sha256(canonical_bytes(listed)).hexdigest()


def _block_lines(prompt: str) -> list[str]:
    begin = prompt.find(_BEGIN)
    if begin < 0:
        raise ActionIrError(
            "missing_tools_block",
            "a prompt without a line `TOOLS` between two line feeds",
        )
    begin += len(_BEGIN)
    end = prompt.find(_END, begin)
    lines = prompt[begin : None if end < 0 else end].splitlines()
    if not lines:
        raise ActionIrError("empty_tools_block", "a TOOLS block without a tool")
    return lines


def _tool(line: str) -> Tool:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ActionIrError(
            "invalid_tool_line",
            "a line of the TOOLS block is not `name(arguments): description`",
            actual=repr(line),
        )
    name, listed = found.groups()
    arguments: dict[str, ValueSchema] = {}
    required: set[str] = set()
    for item in listed.split(", ") if listed else ():
        argument = _ARGUMENT.fullmatch(item)
        if argument is None:
            raise ActionIrError(
                "invalid_argument",
                "an argument of the TOOLS block is not `name:type` or `name:type!`",
                actual=f"{item!r} in {line!r}",
            )
        if argument[1] in arguments:
            raise ActionIrError(
                "duplicate_argument",
                "a tool names one argument twice",
                actual=f"{item!r} in {line!r}",
            )
        arguments[argument[1]] = ValueSchema(argument[2])
        if argument[3]:
            required.add(argument[1])
    return Tool(name, arguments, frozenset(required))
