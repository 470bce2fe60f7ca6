"""Compiled tools: what the driver and the scorer ask about a call's arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from harness.canonical import Json, canonical_json
from harness.json_schema.checks import Compiler, Failures
from harness.json_schema.defaults import DefaultFiller
from harness.json_schema.definition import Definition


class SchemaDefinitionError(ValueError):
    """Tools or parameters outside the subset, with every failure at once."""

    def __init__(self, failures: tuple[dict[str, Json], ...]) -> None:
        self.failures = failures
        super().__init__(
            "; ".join(
                f"{failure['reason']} at {failure['path']}" for failure in failures
            )
        )


class ArgumentSchema:
    """The `parameters` of one tool, compiled once."""

    __slots__ = ("_check", "_filler", "defaulted")

    def __init__(self, parameters: dict[str, Json]) -> None:
        self._check = Compiler(parameters).compile(parameters)
        self._filler = DefaultFiller(parameters, [parameters])
        self.defaulted: frozenset[str] = self._filler.defaulted
        """Top-level names with a declared default."""

    def failures(self, arguments: Json) -> tuple[dict[str, Json], ...]:
        """Return `{reason, argument, ...}` records in a fixed order; () is valid."""
        if type(arguments) is not dict:
            return ({"reason": "arguments_not_object", "argument": "$"},)
        found: Failures = []
        self._check(arguments, (), found)
        if not found:
            return ()
        # `$ref` and `allOf` may say one thing twice.
        return tuple({canonical_json(one): one for one in found}.values())

    def with_defaults(self, arguments: dict[str, Json]) -> dict[str, Json]:
        """Return a copy with declared defaults filled in, recursively."""
        return dict(self._filler.fill(arguments))


class ToolCatalog:
    """The model-facing tool list, compiled."""

    __slots__ = ("_schemas", "names")

    def __init__(self, schemas: dict[str, ArgumentSchema]) -> None:
        self._schemas = schemas
        self.names: tuple[str, ...] = tuple(schemas)
        """Tool names in declared order."""

    def failures(self, name: str, arguments: Json) -> tuple[dict[str, Json], ...]:
        """Return the failures of one call; `unknown_tool` for an undeclared name."""
        schema = self._schemas.get(name)
        if schema is None:
            return ({"reason": "unknown_tool", "argument": "$", "tool": name},)
        return schema.failures(arguments)

    def schema(self, name: str) -> ArgumentSchema | None:
        """Return the compiled parameters of a tool, or None."""
        return self._schemas.get(name)


def compile_parameters(parameters: Json) -> ArgumentSchema:
    """Compile one tool's parameters; raise SchemaDefinitionError with all failures."""
    failures = _parameter_failures(parameters, "$")
    if failures:
        raise SchemaDefinitionError(tuple(failures))
    return ArgumentSchema(parameters)


def compile_tools(tools: Sequence[Json]) -> ToolCatalog:
    """Compile a tool list, once per content; raise SchemaDefinitionError.

    Paths of the failures begin with `tools[<index>]`. Keys that only the pack reads
    (`x-*`) are ignored here.
    """
    return _compile_text(canonical_json(list(tools)))


@lru_cache(maxsize=512)
def _compile_text(text: str) -> ToolCatalog:
    failures: list[dict[str, Json]] = []
    schemas: dict[str, ArgumentSchema] = {}
    for index, tool in enumerate(json.loads(text)):
        where = f"tools[{index}]"
        found = _envelope_failures(tool, where)
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict):
            found += _parameter_failures(
                function.get("parameters"), f"{where}.function.parameters"
            )
            if function.get("name") in schemas:
                found.append(
                    {"reason": "duplicate_tool_name", "path": f"{where}.function.name"}
                )
        if not found:
            schemas[tool["function"]["name"]] = ArgumentSchema(
                tool["function"]["parameters"]
            )
        failures += found
    if failures:
        raise SchemaDefinitionError(tuple(failures))
    return ToolCatalog(schemas)


def _parameter_failures(parameters: Json, path: str) -> list[dict[str, Json]]:
    if not isinstance(parameters, dict):
        return [{"reason": "parameters_not_object", "path": path}]
    definition = Definition(parameters, path)
    definition.run()
    return definition.failures


def _envelope_failures(tool: Json, where: str) -> list[dict[str, Json]]:
    if not isinstance(tool, dict):
        return [{"reason": "tool_not_object", "path": where}]
    found = []
    if tool.get("type") != "function":
        found.append({"reason": "tool_type_not_function", "path": f"{where}.type"})
    function = tool.get("function")
    inside = f"{where}.function"
    if not isinstance(function, dict):
        return [*found, {"reason": "tool_function_not_object", "path": inside}]
    name = function.get("name")
    if not isinstance(name, str) or not name:
        found.append(
            {"reason": "tool_name_not_nonempty_string", "path": f"{inside}.name"}
        )
    if not isinstance(function.get("description", ""), str):
        found.append(
            {"reason": "tool_description_not_string", "path": f"{inside}.description"}
        )
    if not isinstance(function.get("strict", False), bool):
        found.append({"reason": "tool_strict_not_boolean", "path": f"{inside}.strict"})
    return found
