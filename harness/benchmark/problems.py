"""Collects what is wrong with a pack, so that its author sees all of it at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

from harness.benchmark.json_place import JsonLines, fault_line
from harness.canonical import Json, canonical_json, type_tag
from harness.errors import PackError, Violation
from harness.regular_file import read_regular_file
from harness.strict_json import StrictJsonError, decode_document
from harness.strict_yaml import StrictYamlError, YamlLines, YamlPath, load_yaml

PACK_INVALID = "pack_invalid"


class Problems:
    """The violations found so far, in the order in which they were met."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def add(
        self, where: str, problem: str, *, expected: str = "", actual: str = ""
    ) -> None:
        """Remember one problem; the same one is kept once."""
        violation = Violation(PACK_INVALID, where, problem, expected, actual)
        if violation not in self.violations:
            self.violations.append(violation)

    def raise_any(self) -> None:
        """Raise one PackError with every problem, or return."""
        if self.violations:
            raise PackError(
                PACK_INVALID,
                self.violations[0].problem,
                violations=tuple(self.violations),
            )


class PackFile:
    """One parsed file of a pack, able to say where a value stands."""

    def __init__(
        self,
        name: str,
        value: Json,
        lines: YamlLines | JsonLines,
        problems: Problems,
    ) -> None:
        self.name = name
        self.value = value
        self.lines = lines
        self.problems = problems

    def where(self, path: YamlPath = ()) -> str:
        """Return `file:line: key path` as far as each part is known."""
        found = self.lines.line(path)
        line = "" if found is None else f":{found}"
        return f"{self.name}{line}" + (f": {key_path(path)}" if path else "")

    def problem(
        self, path: YamlPath, problem: str, *, expected: str = "", actual: str = ""
    ) -> None:
        """Report what is wrong at a path of this file."""
        self.problems.add(self.where(path), problem, expected=expected, actual=actual)

    def closed(
        self, value: Json, path: YamlPath, required: set[str], optional: set[str]
    ) -> TypeGuard[dict[str, Json]]:
        """Tell whether the value is an object with exactly the allowed keys."""
        if not isinstance(value, dict):
            self.problem(path, "not an object", actual=shown(value))
            return False
        known = required | optional
        for key in sorted(value.keys() - known):
            self.problem(
                (*path, key),
                f"unknown key {key!r}",
                expected=f"keys of {sorted(known)}",
            )
        for key in sorted(required - value.keys()):
            self.problem(path, f"key {key!r} is missing")
        return required <= value.keys()

    def text(
        self, value: Mapping[str, Json], key: str, path: YamlPath, default: str = ""
    ) -> str:
        """Return a non-empty text under a key, or report and return the default."""
        if key not in value:
            return default
        found = value[key]
        if isinstance(found, str) and found.strip():
            return found
        self.problem(
            (*path, key),
            f"{key} is no text",
            expected="a text that is not empty",
            actual=shown(found),
        )
        return default

    def flag(
        self, value: Mapping[str, Json], key: str, path: YamlPath, default: bool = False
    ) -> bool:
        """Return a bool under a key, or report and return the default."""
        found = value.get(key, default)
        if isinstance(found, bool):
            return found
        self.problem(
            (*path, key),
            f"{key} is no bool",
            expected="true or false",
            actual=shown(found),
        )
        return default

    def texts(
        self, value: Mapping[str, Json], key: str, path: YamlPath
    ) -> tuple[str, ...]:
        """Return a list of distinct non-empty texts under a key, () if absent."""
        found = value.get(key, [])
        if not isinstance(found, list):
            self.problem((*path, key), f"{key} is no list", actual=shown(found))
            return ()
        texts: list[str] = []
        for index, item in enumerate(found):
            if not isinstance(item, str) or not item:
                self.problem((*path, key, index), "not a text", actual=shown(item))
            elif item in texts:
                self.problem((*path, key, index), f"{item!r} repeats")
            else:
                texts.append(item)
        return tuple(texts)


def key_path(path: YamlPath) -> str:
    """Return a path as people write it: `a.b[0].c`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(value: Json) -> str:
    """Return a short text of a value for a message."""
    text = canonical_json(value)
    return f"{type_tag(value)} {text if len(text) <= 80 else text[:77] + '...'}"


def read_yaml(path: Path, problems: Problems) -> PackFile | None:
    """Read a YAML file of the pack; None, with the problem reported, if it fails."""
    try:
        document = load_yaml(path)
    except StrictYamlError as error:
        problems.add(error.where, error.problem)
        return None
    except OSError as error:
        problems.add(path.name, f"cannot be read: {error.strerror}")
        return None
    return PackFile(path.name, document.value, document.lines, problems)


def read_json(path: Path, problems: Problems) -> PackFile | None:
    """Read a JSON file of the pack; None, with the problem reported, if it fails."""
    data = b""
    try:
        data = read_regular_file(path)
        value = decode_document(data)
        canonical_json(value).encode("utf-8")
    except StrictJsonError as error:
        line = fault_line(data, error)
        where = path.name if line is None else f"{path.name}:{line}"
        problems.add(where, f"not strict JSON: {error.code}: {error.detail}")
        return None
    except UnicodeEncodeError:
        problems.add(path.name, "text with an unpaired surrogate")
        return None
    except OSError as error:
        problems.add(path.name, f"cannot be read: {error.strerror}")
        return None
    return PackFile(path.name, value, JsonLines(data.decode("utf-8")), problems)
