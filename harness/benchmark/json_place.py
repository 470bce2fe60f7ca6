"""On which line a value or a fault of a JSON file stands, for whoever edits it.

A JSON text is also YAML, whose reader knows the place of every value. Where the two
languages differ (a tab before a value, a key of a thousand characters) no line is
told, rather than a wrong one.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from harness.strict_json import StrictJsonError
from harness.strict_yaml import StrictYamlError, YamlLines, YamlPath, load_yaml

_STATED: Final = re.compile(r": line (\d+) column \d+ \(char \d+\)$")
_NOT_FINITE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')
_REPEATS: Final = re.compile(r"key .* repeats", re.DOTALL)
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class JsonLines:
    """Knows on which line of a valid JSON text the value at a path starts."""

    def __init__(self, text: str) -> None:
        self._text = text

    def line(self, path: YamlPath) -> int | None:
        """Return the line of the value or of its nearest parent, None if unknown."""
        return None if self._lines is None else self._lines.line(path)

    @cached_property
    def _lines(self) -> YamlLines | None:
        try:
            return load_yaml(self._text).lines
        except StrictYamlError:
            return None


def fault_line(data: bytes, error: StrictJsonError) -> int | None:
    """Return the line of what strict JSON refuses in a file, None if unknown."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as broken:
        return data.count(b"\n", 0, broken.start) + 1
    stated = _STATED.search(error.detail)
    if stated:
        return int(stated[1])
    if error.code == "non_finite_number":
        found = (match for match in _NOT_FINITE.finditer(text) if match[1])
        return next((text.count("\n", 0, m.start()) + 1 for m in found), None)
    if error.code == "duplicate_key":
        try:
            load_yaml(text)
        except StrictYamlError as refusal:
            return refusal.line if _REPEATS.fullmatch(refusal.problem) else None
    return None


def json_path(written: str) -> YamlPath:
    """Return the path that is written as `name[0].key`, without its first name."""
    steps = _STEP.findall(written)
    return tuple(int(index) if index else key for index, key in steps[1:])
