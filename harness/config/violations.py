"""Violations of one config file, collected and put into file order.

A path is the tuple of keys and list positions from the document's root. A path that
is already in violation is unsound: later rules that need its value say nothing, so
one mistake is reported once.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from harness.canonical import Json, canonical_json
from harness.causes import CAUSES
from harness.errors import ConfigError, Violation
from harness.strict_yaml import YamlLines, YamlPath

_INIT: Final = "`fairtrial config init` writes a file with every key"
_RECOVERY: Final = {
    "bool_type": "write true or false, without quotes",
    "int_type": "write a whole number, without quotes",
    "float_type": "write a number, without quotes",
    "string_type": "write a text; put it in quotes if it looks like a number",
    "missing": f"add the key; {_INIT}",
    "secret_in_eval_config": "name the variable that holds the secret in api_key_env",
}
_OTHERWISE: Final = f"write a value that is expected; {_INIT}"


class Unsound:
    """Stands for a value that is missing or already refused."""


UNSOUND: Final = Unsound()


def path_text(path: YamlPath) -> str:
    """Return a key path as people write it, `candidates[0].api.base_url`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".") or "the document"


def seen(value: Json) -> str:
    """Return a value for a message; containers by type only, texts cut."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = canonical_json(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class Violations:
    """Everything that is wrong with one document."""

    def __init__(self, raw: Json, lines: YamlLines, name: str) -> None:
        self.raw = raw
        self.lines = lines
        self.name = name
        self._found: dict[YamlPath, Violation] = {}

    def add(
        self,
        code: str,
        path: YamlPath,
        problem: str,
        *,
        expected: str = "",
        actual: str = "",
        recovery: str = "",
        shown: YamlPath | None = None,
    ) -> None:
        """Record a violation, unless its path has one already.

        `shown` replaces a path that must not be repeated.
        """
        place = f"{self.name}:{self.lines.line(path)}"
        self._found.setdefault(
            path,
            Violation(
                code,
                f"{path_text(path if shown is None else shown)} ({place})",
                problem,
                expected,
                actual,
                recovery,
            ),
        )

    def add_shape_errors(
        self,
        errors: Iterable[ErrorDetails],
        model: type[BaseModel],
        place: YamlPath = (),
    ) -> None:
        """Record what the model of the section at `place` refused."""
        for error in errors:
            if error["type"] == "too_short" and error["input"]:
                continue
            self._add_shape_error(error, model, place)

    def _add_shape_error(
        self, error: ErrorDetails, model: type[BaseModel], place: YamlPath
    ) -> None:
        path: YamlPath = error["loc"]
        kind = error["type"]
        context = error.get("ctx", {})
        if kind == "missing":
            problem, actual = "a mandatory key is missing", "no such key"
            expected = "the key; it has no default, for it changes what a score means"
        elif kind == "extra_forbidden":
            known = _known_keys(model, path)
            problem, actual = "a key that does not exist here", str(path[-1])
            expected = f"only {', '.join(known)}"
        elif kind in CAUSES:
            problem, expected = context["problem"], context["want"]
            actual = "" if path[-1] == "base_url" else seen(error["input"])
        else:
            problem = "a value of another type or range"
            expected = _expectation(error)
            actual = seen(error["input"])
        self.add(
            kind if kind in CAUSES else "eval_config_invalid",
            (*place, *path),
            problem,
            expected=expected,
            actual=actual,
            recovery=_RECOVERY.get(kind) or _suggestion(model, path, kind),
        )

    def value(self, *path: str | int, default: Json = UNSOUND) -> Any:
        """Return the raw value at a path, or UNSOUND."""
        for bad in self._found:
            shorter = min(len(bad), len(path))
            if bad[:shorter] == path[:shorter]:
                return UNSOUND
        value = self.raw
        for part in path:
            if not isinstance(value, dict | list):
                return default
            try:
                value = value[part]  # type: ignore[index]
            except (LookupError, TypeError):  # No such key, or a list under a name.
                return default
        return value

    def candidates(self) -> int:
        """Return how many candidates the document lists, sound or not."""
        listed = self.raw.get("candidates")
        return len(listed) if isinstance(listed, list) else 0

    def raise_if_any(self) -> None:
        """Raise ConfigError with all violations in file order."""
        if self._found:
            ordered = sorted(self._found, key=self._position)
            raise ConfigError.from_violations(tuple(self._found[p] for p in ordered))

    def _position(self, path: YamlPath) -> tuple[int, ...]:
        """Return where a path stands; a missing key stands at its section's end."""
        position: list[int] = []
        value = self.raw
        for part in path:
            if isinstance(value, dict):
                keys = list(value)
                position.append(keys.index(part) if part in value else len(keys))
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int):
                position.append(part)
                value = value[part] if part < len(value) else None
        return tuple(position)


def _expectation(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return f"a text that matches {context['pattern']}"
    text = error["msg"].removeprefix("Input should be ")
    if error["type"] == "tuple_type":
        return "a list"
    if error["type"] == "model_type":
        return "a section with keys"
    return text[:1].lower() + text[1:]


def _section(model: type[BaseModel], path: YamlPath) -> type[BaseModel] | None:
    """Return the model that holds the last key of a path."""
    current: type[BaseModel] | None = model
    for part in path[:-1]:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if current else None
        current = _inner_model(field.annotation) if field else None
    return current


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        found = _inner_model(argument)
        if found is not None:
            return found
    return None


def _known_keys(model: type[BaseModel], path: YamlPath) -> list[str]:
    section = _section(model, path)
    return sorted(section.model_fields) if section else []


def _suggestion(model: type[BaseModel], path: YamlPath, kind: str) -> str:
    if kind != "extra_forbidden":
        return _OTHERWISE
    close = difflib.get_close_matches(str(path[-1]), _known_keys(model, path), 1)
    return f"did you mean {close[0]}?" if close else "remove the key"
