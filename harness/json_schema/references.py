"""Local `$ref` pointers: `#` or `#/...` with `~0`, `~1` and percent escapes."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from harness.canonical import Json


class Target(NamedTuple):
    """Where a pointer leads."""

    schema: dict[str, Json]
    path: str


def is_local(reference: Json) -> bool:
    """Tell whether the reference stays inside its own document."""
    return isinstance(reference, str) and (
        reference == "#" or reference.startswith("#/")
    )


def resolve(root: dict[str, Json], reference: str) -> Target | None:
    """Follow a local pointer; None where it leads to no object."""
    node: Json = root
    path = "$"
    for token in unquote(reference[1:]).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
            path = f"{path}.{key}"
        elif isinstance(node, list) and _is_index(key) and int(key) < len(node):
            node = node[int(key)]
            path = f"{path}[{key}]"
        else:
            return None
    return Target(node, path) if isinstance(node, dict) else None


def target_of(root: dict[str, Json], schema: dict[str, Json]) -> list[dict[str, Json]]:
    """Return what an accepted schema's `$ref` leads to: one schema object or none."""
    target = resolve(root, schema["$ref"]) if "$ref" in schema else None
    return [] if target is None else [target.schema]


def _is_index(key: str) -> bool:
    return (
        key.isascii() and key.isdecimal() and (key == "0" or key[0] != "0")
    ) and len(key) < 10
