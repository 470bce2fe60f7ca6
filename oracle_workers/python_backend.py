"""A pack's Python modules, as loaded in a host or worker.

The only place that imports pack code. A pack whose backend is an endpoint has its
assertions here and nothing else. The pack's folders stand first on the import path,
and its modules are compiled from their source each time: compiled code in a cache
folder is in no fingerprint, and any earlier run could have left it there. What the
contract asks of a pack (four functions, assertions by name) is looked up once, so
later tampering with the modules changes nothing.
"""

from __future__ import annotations

import datetime
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from oracle_workers import plain_json
from oracle_workers.own_builtins import OWN_BUILTINS

globals()["__builtins__"] = OWN_BUILTINS

_FUNCTIONS = ("list_tools", "reset", "call_tool", "get_state")
_DETAIL_SIZE = 2000


class PackBrokenError(Exception):
    """The pack does not offer what its contract asks for."""


class RunContext(NamedTuple):
    """What a pack knows about its run; there is no other clock and no other seed."""

    clock: datetime.datetime
    seed: int
    timeout_s: float
    task_id: str
    turn_index: int | None
    """Position of the assistant message that made the call; None outside a call."""


class PythonPack:
    """Backend functions, assertions and fixtures of one pack."""

    def __init__(
        self,
        functions: dict[str, Callable[..., Any]],
        assertions: dict[str, Callable[..., Any]],
        fixtures: bytes | None,
    ) -> None:
        self.assertions = assertions
        self._list_tools = functions["list_tools"]
        self._reset = functions["reset"]
        self._call_tool = functions["call_tool"]
        self._get_state = functions["get_state"]
        self._fixtures = fixtures
        self._parsed = None if fixtures is None else plain_json.decode(fixtures)
        self._parsed_is_fresh = True

    @classmethod
    def load(cls, paths: dict[str, Any]) -> PythonPack:
        """Import the pack; whatever its code raises comes through."""
        sys.dont_write_bytecode = True
        sys.path_hooks.insert(0, _finder_within(paths["import_folders"]))
        sys.path_importer_cache.clear()
        sys.path[:0] = paths["import_folders"]
        sys.path.extend(path for path in paths["packages"] if path not in sys.path)
        functions = dict.fromkeys(_FUNCTIONS, _elsewhere)
        if paths["backend"] is not None:
            backend = _import_file(paths["backend"])
            functions = {name: _function_of(backend, name) for name in _FUNCTIONS}
        assertions = _assertions_of(_import_file(paths["assertions"]))
        return cls(functions, assertions, _read(paths["fixtures"]))

    def list_tools(self) -> Any:
        """Return what the backend names as its tools."""
        return self._list_tools()

    def reset(self, context: RunContext, fixtures: Any = None) -> None:
        """Start an episode on untouched fixtures, or on those that were sent."""
        if fixtures is not None:
            self._reset(ctx=context, fixtures=fixtures)
            return
        # A worker is a fork, so the first reset may have the inherited object; a
        # backend that kept and changed it must not meet its own changes later.
        if not self._parsed_is_fresh and self._fixtures is not None:
            self._parsed = plain_json.decode(self._fixtures)
        self._parsed_is_fresh = False
        self._reset(ctx=context, fixtures=self._parsed)

    def call_tool(self, name: str, arguments: Any, context: RunContext) -> Any:
        """Run one tool call and return what the backend returns."""
        return self._call_tool(name, arguments, ctx=context)

    def get_state(self) -> Any:
        """Return the backend's observable state."""
        return self._get_state()


def describe_error(error: BaseException) -> str:
    """Return type, message and innermost place of an exception, capped."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - an exception of the pack may break here too
        text = "(its message cannot be shown)"
    place = ""
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        file = code.co_filename.rpartition("/")[2]
        place = f" (at {file}:{step.tb_lineno} in {code.co_name})"
        step = step.tb_next
    return f"{type(error).__name__}: {text[:_DETAIL_SIZE]}{place}"


class _FreshLoader(SourceFileLoader):
    """Compiles a module from its source, whatever lies in a cache folder."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source file as it is now."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _finder_within(folders: list[str]) -> Callable[[str], FileFinder]:
    """Return the path hook that imports what lies below these folders."""

    def hook(path: str) -> FileFinder:
        if not any(
            path == folder or path.startswith(f"{folder}/") for folder in folders
        ):
            raise ImportError(path)
        return FileFinder(
            path,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (_FreshLoader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )

    return hook


def _import_file(path: str) -> ModuleType:
    name = path.rpartition("/")[2].removesuffix(".py")
    spec = importlib.util.spec_from_file_location(
        name, path, loader=_FreshLoader(name, path)
    )
    if spec is None or spec.loader is None:
        raise PackBrokenError(f"{name} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _elsewhere(*_: Any, **__: Any) -> Any:
    raise PackBrokenError("this worker has no backend: it is an endpoint")


def _function_of(module: ModuleType, name: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise PackBrokenError(f"{module.__name__}.py has no function {name}")
    found: Callable[..., Any] = function
    return found


def _assertions_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    declared = getattr(module, "ASSERTIONS", None)
    if declared is None:
        declared = {
            name: value
            for name, value in vars(module).items()
            if name.startswith("assert_") and callable(value)
        }
    if not isinstance(declared, dict):
        raise PackBrokenError("ASSERTIONS is not a dict of name to function")
    return {str(name): value for name, value in declared.items() if callable(value)}


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as stream:
        return stream.read()
