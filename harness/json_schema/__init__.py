"""The tool-argument schema engine: one subset, compiled once, exact reasons.

`definition` decides what a pack may declare, `checks` what arguments violate,
`defaults` what a declaration fills in, `catalog` puts one tool list together.
Validation inserts no defaults (spec 1.4, wire contract A7).
"""

from harness.json_schema.catalog import (
    ArgumentSchema,
    SchemaDefinitionError,
    ToolCatalog,
    compile_parameters,
    compile_tools,
)

__all__ = [
    "ArgumentSchema",
    "SchemaDefinitionError",
    "ToolCatalog",
    "compile_parameters",
    "compile_tools",
]
