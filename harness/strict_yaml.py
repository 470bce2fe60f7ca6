"""Strict YAML: one document of plain JSON values, with the line of every value.

The file is read as PyYAML's safe schema reads it, minus everything that surprises:
duplicate keys, keys that are no text, merge keys, tags, dates, base-60 and octal
integers, NaN and infinity, recursive aliases and alias bombs are refused with the
line and column where they stand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from harness.canonical import Json
from harness.regular_file import read_regular_file
from harness.strict_json import has_unpaired_surrogate

YamlPath = tuple[str | int, ...]
MAX_NODES: Final = 200_000
"""Most values that one document may have once its aliases are followed."""

_PREFIX: Final = "tag:yaml.org,2002:"
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_PREFIXED = re.compile(r"[-+]?0[xb][0-9a-fA-F_]+")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*)?\.?[0-9_]*([eE][-+]?[0-9]+)?")
MAX_INTEGER_LENGTH: Final = 1000
"""Longest integer that is read, in characters; no setting needs a longer one."""
_TRUE: Final = frozenset({"yes", "true", "on"})
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictYamlError(ValueError):
    """The text is not one strict YAML document; says where, counted from 1."""

    def __init__(self, problem: str, line: int, column: int, source: str = "") -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.source = source
        super().__init__(f"{self.where}: {problem}")

    @property
    def where(self) -> str:
        """The position as `file:line:column`, or `line N, column M` for a text."""
        if self.source:
            return f"{self.source}:{self.line}:{self.column}"
        return f"line {self.line}, column {self.column}"


class YamlLines:
    """Knows on which line the value at a path starts."""

    def __init__(self) -> None:
        self._lines: dict[YamlPath, int] = {}

    def record(self, path: YamlPath, line: int) -> None:
        """Remember the line (from 1) of one value."""
        self._lines[path] = line

    def line(self, path: YamlPath) -> int:
        """Return the line of the value, or of its nearest parent that exists."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def __iter__(self) -> Iterator[YamlPath]:
        return iter(self._lines)


class YamlDocument(NamedTuple):
    """One document: its plain value and the lines of its parts."""

    value: Json
    lines: YamlLines


def load_yaml(
    source: Path | str, *, fraction: Callable[[str], Json] = float
) -> YamlDocument:
    """Read a file (Path) or a text (str).

    `fraction` makes a value of the text of a finite number that is no integer.
    Raises StrictYamlError for what is not strict YAML and OSError for a file that
    cannot be read. An empty document is None.
    """
    name = source.name if isinstance(source, Path) else ""
    text = _read(source, name) if isinstance(source, Path) else source
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise _at(mark, problem, name) from None
    except yaml.reader.ReaderError as error:
        before = text.encode("utf-8")[: error.position]
        raise _in_bytes(before, str(error).split("\n", 1)[0], name) from None
    except yaml.YAMLError as error:
        raise StrictYamlError(str(error).split("\n", 1)[0], 1, 1, name) from None
    except RecursionError:
        raise StrictYamlError("nested too deeply", 1, 1, name) from None
    lines = YamlLines()
    if node is None:
        return YamlDocument(None, lines)
    return YamlDocument(_Builder(lines, name, fraction).build(node, (), ()), lines)


def _read(path: Path, name: str) -> str:
    data = read_regular_file(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _in_bytes(data[: error.start], "not UTF-8", name) from None


def _in_bytes(before: bytes, problem: str, source: str) -> StrictYamlError:
    """Return a refusal of what stands behind these bytes of a source."""
    lines = before.split(b"\n")
    column = len(lines[-1].decode("utf-8", "replace")) + 1
    return StrictYamlError(problem, len(lines), column, source)


def _at(mark: Any, problem: str, source: str) -> StrictYamlError:
    if mark is None:
        return StrictYamlError(problem, 1, 1, source)
    return StrictYamlError(problem, mark.line + 1, mark.column + 1, source)


class _Builder:
    """Turns the node graph into plain values."""

    def __init__(
        self, lines: YamlLines, source: str, fraction: Callable[[str], Json]
    ) -> None:
        self.lines = lines
        self.source = source
        self.fraction = fraction
        self.nodes = 0

    def refusal(self, node: yaml.Node, problem: str) -> StrictYamlError:
        return _at(node.start_mark, problem, self.source)

    def build(self, node: yaml.Node, path: YamlPath, parents: tuple[int, ...]) -> Json:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.refusal(node, f"more than {MAX_NODES} values")
        if id(node) in parents:
            raise self.refusal(node, "an alias contains itself")
        self.lines.record(path, node.start_mark.line + 1)
        tag = node.tag.removeprefix(_PREFIX)
        inside = (*parents, id(node))
        if isinstance(node, yaml.MappingNode) and tag == "map":
            return self.mapping(node, path, inside)
        if isinstance(node, yaml.SequenceNode) and tag == "seq":
            return [
                self.build(item, (*path, index), inside)
                for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, tag)
        raise self.refusal(node, f"tag {node.tag} is not a plain JSON type")

    def mapping(
        self, node: yaml.MappingNode, path: YamlPath, parents: tuple[int, ...]
    ) -> dict[str, Json]:
        value: dict[str, Json] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            if key in value:
                raise self.refusal(key_node, f"key {key!r} repeats")
            value[key] = self.build(value_node, (*path, key), parents)
            self.lines.record((*path, key), key_node.start_mark.line + 1)
        return value

    def key(self, node: yaml.Node) -> str:
        tag = node.tag.removeprefix(_PREFIX)
        if tag == "merge":
            raise self.refusal(node, "merge keys (<<) are not supported")
        key = self.scalar(node, tag) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise self.refusal(node, "a key that is no text; put it in quotes")
        return key

    def scalar(self, node: yaml.ScalarNode, tag: str) -> Json:
        text: str = node.value
        if tag == "str":
            if has_unpaired_surrogate(text):
                raise self.refusal(node, "text with an unpaired surrogate")
            return text
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() in _TRUE
        if tag == "int":
            return self.integer(node, text)
        if tag == "float":
            return self.floating(node, text)
        raise self.refusal(
            node, f"{text!r} reads as {tag}, not as a JSON value; put it in quotes"
        )

    def integer(self, node: yaml.ScalarNode, text: str) -> int:
        if len(text) > MAX_INTEGER_LENGTH:
            raise self.refusal(
                node, f"an integer of {len(text)} characters; put text in quotes"
            )
        if _DECIMAL.fullmatch(text):
            return int(text.replace("_", ""))
        if _PREFIXED.fullmatch(text):
            return int(text.replace("_", ""), 0)
        raise self.refusal(
            node, f"{text!r} is no decimal integer; put it in quotes if it is text"
        )

    def floating(self, node: yaml.ScalarNode, text: str) -> Json:
        digits = text.replace("_", "")
        try:
            value = float(digits) if _FLOAT.fullmatch(text) else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.refusal(node, f"{text!r} is not a finite decimal number")
        return self.fraction(digits)
