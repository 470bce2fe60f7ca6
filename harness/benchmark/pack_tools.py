"""`tools.json`: what the model sees, and what only fairtrial knows of a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.benchmark.json_place import json_path
from harness.benchmark.manifest import Confirmation
from harness.benchmark.problems import PackFile, shown
from harness.canonical import Json
from harness.json_schema import SchemaDefinitionError, ToolCatalog, compile_tools
from harness.json_schema.references import target_of
from harness.strict_yaml import YamlPath

_MODEL_KEYS: Final = ("name", "description", "parameters", "strict")
_PACK_KEYS: Final = ("x-mutates", "x-requires-confirmation")


@dataclass(frozen=True, slots=True)
class PackTool:
    """One tool by the pack's own declaration."""

    name: str
    mutates: bool
    requires_confirmation: bool
    parameters: dict[str, Json]
    model_tool: dict[str, Json]
    """The projection that the model sees, without pack-only keys."""

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the required top-level parameters, in declared order."""
        return tuple(self.parameters.get("required", ()))

    def enum(self, parameter: str) -> list[Json] | None:
        """Return the declared enum of a top-level parameter, if it has one."""
        properties = self.parameters.get("properties", {})
        return _enum_of(self.parameters, properties.get(parameter, {}))


@dataclass(frozen=True, slots=True)
class PackTools:
    """All tools of a pack by name, in declared order."""

    by_name: dict[str, PackTool]
    catalog: ToolCatalog

    def model_tools(
        self, names: tuple[str, ...] | None = None
    ) -> list[dict[str, Json]]:
        """Return the model-facing tools, all or those named, in declared order."""
        return [
            tool.model_tool
            for tool in self.by_name.values()
            if names is None or tool.name in names
        ]


def read_tools(file: PackFile, confirmation: Confirmation) -> PackTools | None:
    """Read the tools; report every problem; None if the schemas do not compile."""
    if not isinstance(file.value, list) or not file.value:
        file.problem((), "not a list of tools", actual=shown(file.value))
        return None
    tools = [
        tool
        for index, raw in enumerate(file.value)
        if (tool := _tool(file, raw, index)) is not None
    ]
    if len(tools) != len(file.value):
        return None
    try:
        catalog = compile_tools([tool.model_tool for tool in tools])
    except SchemaDefinitionError as error:
        for failure in error.failures:
            details = {k: v for k, v in failure.items() if k not in ("reason", "path")}
            file.problem(
                json_path(str(failure["path"])),
                str(failure["reason"]),
                actual=shown(details) if details else "",
            )
        return None
    for index, tool in enumerate(tools):
        _check_confirmation(file, tool, index, confirmation)
    return PackTools({tool.name: tool for tool in tools}, catalog)


def _enum_of(root: dict[str, Json], schema: dict[str, Json]) -> list[Json] | None:
    """Return the enum of a compiled schema, behind its references too."""
    values = schema.get("enum")
    if isinstance(values, list):
        return values
    behind = (*target_of(root, schema), *schema.get("allOf", ()))
    return next((found for member in behind if (found := _enum_of(root, member))), None)


def _tool(file: PackFile, raw: Json, index: int) -> PackTool | None:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict):
        file.problem((index,), "tool_not_object", expected="type and function")
        return None
    flags = []
    for key in _PACK_KEYS:
        holder = function if key in function else raw
        path: YamlPath = (index, "function") if key in function else (index,)
        flags.append(file.flag(holder, key, path))
    for path, holder, known in (
        ((index,), raw, ("type", "function")),
        ((index, "function"), function, _MODEL_KEYS),
    ):
        for key in holder:
            if key not in known and not key.startswith("x-"):
                file.problem((*path, key), f"unknown key {key!r}")
    projection = {key: function[key] for key in _MODEL_KEYS if key in function}
    name = function.get("name")
    parameters = function.get("parameters")
    return PackTool(
        name=name if isinstance(name, str) else "",
        mutates=flags[0],
        requires_confirmation=flags[1],
        parameters=parameters if isinstance(parameters, dict) else {},
        model_tool={"type": raw.get("type"), "function": projection},
    )


def _check_confirmation(
    file: PackFile, tool: PackTool, index: int, confirmation: Confirmation
) -> None:
    if not tool.requires_confirmation:
        return
    if not tool.mutates:
        file.problem(
            (index,),
            f"{tool.name} asks for confirmation but does not declare x-mutates",
        )
    schema = tool.parameters.get("properties", {}).get(confirmation.parameter)
    if not isinstance(schema, dict) or schema.get("type") != "boolean":
        file.problem(
            (index,),
            f"{tool.name} asks for confirmation without its parameter",
            expected=f"a boolean parameter {confirmation.parameter!r}",
            actual=shown(schema),
        )
