"""`assertions.py` read without running it: names, signatures, capabilities.

Pack code never runs in this process, so everything here comes from the syntax tree
(`spec/executable-evaluator.md` 1.9). Where the exports are computed, the names are
unknown here and the oracle probe answers instead.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from harness.benchmark.pack_python import NotPythonError, literal_of, parse_module
from harness.benchmark.problems import Problems
from harness.conversation.task import AssertionCategory
from harness.regular_file import read_regular_file

_PARAMETERS: Final = ("state", "trace", "task", "ctx")
_EXPORTS: Final = "ASSERTIONS"
_CAPABILITIES: Final = "ASSERTION_CAPABILITIES"
_PREFIX: Final = "assert_"

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Capability:
    """What one assertion says it can judge."""

    trace: bool = False
    executable: bool = True
    category: AssertionCategory = "unclassified"


@dataclass(frozen=True, slots=True)
class AssertionCatalog:
    """The assertions of a pack."""

    names: frozenset[str] | None
    """Exported names; None where only importing the module can tell."""
    capabilities: dict[str, Capability]

    def capability(self, name: str) -> Capability:
        """Return the declared capability, or the defaults."""
        return self.capabilities.get(name, Capability())


def read_assertions(path: Path, problems: Problems) -> AssertionCatalog | None:
    """Read the module's syntax tree; report every problem; None if it has none."""
    try:
        tree = parse_module(read_regular_file(path), path.name)
    except NotPythonError as error:
        problems.add(f"{path.name}:{error.line}", f"not Python: {error}")
        return None
    return _Reader(path.name, tree, problems).catalog()


class _Reader:
    def __init__(self, name: str, tree: ast.Module, problems: Problems) -> None:
        self.name = name
        self.problems = problems
        self.functions: dict[str, _Function] = {
            node.name: node for node in tree.body if isinstance(node, _Function)
        }
        self.assigned: dict[str, ast.expr] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.assigned[target.id] = node.value
            elif (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and node.value is not None
            ):
                self.assigned[node.target.id] = node.value

    def problem(self, node: ast.AST, problem: str) -> None:
        line = getattr(node, "lineno", 1)
        self.problems.add(f"{self.name}:{line}", problem)

    def catalog(self) -> AssertionCatalog:
        exported = self.exports()
        if exported is not None:
            for function in exported.values():
                if function is not None:
                    self.check_signature(function)
            if not exported:
                self.problems.add(self.name, "exports no assertion")
        names = None if exported is None else frozenset(exported)
        return AssertionCatalog(names, self.capabilities(names))

    def exports(self) -> dict[str, _Function | None] | None:
        """Return exported names with their functions; None if they are computed."""
        found: dict[str, _Function | None] = {
            name: node
            for name, node in self.functions.items()
            if name.startswith(_PREFIX)
        }
        declared = self.assigned.get(_EXPORTS)
        if declared is None:
            return found
        if not isinstance(declared, ast.Dict):
            return None
        for key, value in zip(declared.keys, declared.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                return None
            target = value.id if isinstance(value, ast.Name) else ""
            found[key.value] = self.functions.get(target)
        return found

    def check_signature(self, function: _Function) -> None:
        arguments = function.args
        if isinstance(function, ast.AsyncFunctionDef):
            self.problem(function, f"invalid_signature: {function.name} is async")
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        needed = positional[: len(positional) - len(arguments.defaults)]
        needed += [
            argument.arg
            for argument, default in zip(
                arguments.kwonlyargs, arguments.kw_defaults, strict=True
            )
            if default is None
        ]
        known = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
        missing = [name for name in _PARAMETERS if name not in known]
        extra = [name for name in needed if name not in _PARAMETERS]
        if extra or arguments.posonlyargs or (missing and arguments.kwarg is None):
            self.problem(
                function,
                f"invalid_signature: {function.name} must be callable with exactly "
                f"the keywords {', '.join(_PARAMETERS)}",
            )

    def capabilities(self, names: frozenset[str] | None) -> dict[str, Capability]:
        declared = self.assigned.get(_CAPABILITIES)
        if declared is None:
            return {}
        try:
            value = literal_of(declared)
        except NotPythonError as error:
            self.problem(
                declared, f"invalid_assertion_capability: {_CAPABILITIES}: {error}"
            )
            return {}
        if not isinstance(value, dict):
            self.problem(
                declared, f"invalid_assertion_capability: {_CAPABILITIES} is no dict"
            )
            return {}
        found = {}
        for name, entry in value.items():
            capability = _capability(entry)
            if not isinstance(name, str) or (names is not None and name not in names):
                self.problem(
                    declared, f"invalid_assertion_capability: no assertion {name!r}"
                )
            elif capability is None:
                self.problem(
                    declared, f"invalid_assertion_capability: entry of {name!r}"
                )
            else:
                found[name] = capability
        return found


def _capability(entry: object) -> Capability | None:
    if not isinstance(entry, dict) or entry.keys() - {
        "trace",
        "executable",
        "category",
    }:
        return None
    trace, executable = entry.get("trace", False), entry.get("executable", True)
    category = entry.get("category", "unclassified")
    if not (isinstance(trace, bool) and isinstance(executable, bool)):
        return None
    if category not in get_args(AssertionCategory):
        return None
    return Capability(trace, executable, category)
