"""`manifest.yaml`: what a pack is called and where its parts are.

The keys are those of `spec/executable-evaluator.md` 1.2 and one of ours: `docs`, a
folder whose files are for people and stay outside the fingerprint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.benchmark.problems import PackFile, shown
from harness.canonical import Json
from harness.strict_yaml import YamlPath

DEFAULT_PATHS: Final = {
    "tools": "tools.json",
    "fixtures": "fixtures.json",
    "templates": "task_templates.yaml",
    "assertions": "assertions.py",
    "validation_cases": "validation_cases.yaml",
    "backend": "backend.py",
    "endpoint": "endpoint_config.yaml",
}
MILESTONE_TYPES: Final = (
    "tool_call",
    "ask_for_slot",
    "ask_confirm",
    "decline",
    "final_answer",
)
_REQUIRED: Final = frozenset({"tools", "templates", "assertions", "validation_cases"})
_KEYS: Final = {
    "paths",
    "primary_keys",
    "absent_ids",
    "languages",
    "default_language",
    "system_prompt",
    "system_prompt_path",
    "assistant_turn_templates",
    "confirmation",
    "surface_guards",
    "held_out",
    "docs",
}
_PACK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}")

Wording = dict[str, dict[str, str]]
"""Milestone type (or id) to language to text."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """How the tools of this pack ask for and get a confirmation."""

    parameter: str = "confirm"
    status_field: str = "status"
    pending_status: str = "awaiting_confirmation"


@dataclass(frozen=True, slots=True)
class PackManifest:
    """The parsed manifest; paths are absolute."""

    pack_id: str
    version: str
    paths: dict[str, Path]
    """Role to file, for every part that exists; also `system_prompt`, `held_out`."""
    primary_keys: dict[str, str]
    absent_ids: dict[str, tuple[Json, ...]]
    languages: tuple[str, ...]
    default_language: str
    system_prompt: str | None
    wording: Wording
    confirmation: Confirmation
    tool_names_exempt: frozenset[str] = field(default_factory=frozenset)
    docs: str | None = None


def read_manifest(file: PackFile, root: Path) -> PackManifest | None:
    """Read the manifest; report every problem; None where nothing can follow."""
    value = file.value
    if not file.closed(value, (), {"pack_id", "version"}, _KEYS):
        return None
    languages, language = _languages(file)
    paths = _paths(file, root)
    prompt = _system_prompt(file, paths)
    if prompt is None and set(languages) != {"en"}:
        file.problem(
            ("languages",),
            "a pack in another language than English needs its own system prompt",
            expected="system_prompt or system_prompt_path",
        )
    return PackManifest(
        pack_id=_token(file, "pack_id", _PACK_ID),
        version=_token(file, "version", _VERSION),
        paths=paths,
        primary_keys=_primary_keys(file),
        absent_ids=_absent_ids(file),
        languages=languages,
        default_language=language,
        system_prompt=prompt,
        wording=read_wording(
            file,
            value.get("assistant_turn_templates", {}),
            ("assistant_turn_templates",),
        ),
        confirmation=_confirmation(file),
        tool_names_exempt=_exempt_names(file),
        docs=_docs(file, root),
    )


def _languages(file: PackFile) -> tuple[tuple[str, ...], str]:
    stated = file.text(file.value, "default_language", ())
    languages = file.texts(file.value, "languages", ()) or (stated or "en",)
    language = stated or languages[0]
    if language not in languages:
        file.problem(
            ("default_language",),
            "the default language is not one of the languages",
            expected=f"one of {list(languages)}",
            actual=language,
        )
    return languages, language


def read_wording(file: PackFile, value: Json, path: YamlPath) -> Wording:
    """Read `<milestone type or id>.<language>: text`."""
    wording: Wording = {}
    if not isinstance(value, dict):
        file.problem(path, "not an object", actual=shown(value))
        return wording
    for name, texts in value.items():
        if not isinstance(texts, dict):
            file.problem((*path, name), "not an object of languages")
            continue
        wording[name] = {
            language: file.text(texts, language, (*path, name)) for language in texts
        }
    return wording


def _token(file: PackFile, key: str, pattern: re.Pattern[str]) -> str:
    text = file.value[key]
    if isinstance(text, str) and pattern.fullmatch(text):
        return text
    file.problem(
        (key,),
        f"{key} is no plain token",
        expected=f"a text like {pattern.pattern}; put a number in quotes",
        actual=shown(text),
    )
    return "invalid"


def _paths(file: PackFile, root: Path) -> dict[str, Path]:
    given = file.value.get("paths", {})
    if not file.closed(given, ("paths",), set(), set(DEFAULT_PATHS)):
        given = {}
    paths: dict[str, Path] = {}
    for role, default in DEFAULT_PATHS.items():
        name = file.text(given, role, ("paths",), default)
        path = inside(file, root, name, ("paths", role))
        if path is not None and path.is_file():
            paths[role] = path
        elif path is not None and (role in given or role in _REQUIRED):
            file.problem(("paths", role), f"the {role} file {name} does not exist")
    oracles = [role for role in ("backend", "endpoint") if role in paths]
    if len(oracles) != 1:
        file.problem(
            ("paths",),
            "a pack has one oracle",
            expected="either backend.py or endpoint_config.yaml",
            actual=f"found {oracles or 'neither'}",
        )
    for key, role in (
        ("system_prompt_path", "system_prompt"),
        ("held_out", "held_out"),
    ):
        name = file.text(file.value, key, ())
        path = inside(file, root, name, (key,)) if name else None
        if path is not None and path.is_file():
            paths[role] = path
        elif path is not None:
            file.problem((key,), f"the file {name} does not exist")
    return paths


def inside(file: PackFile, root: Path, name: str, path: YamlPath) -> Path | None:
    """Return the file of a pack-relative name, or report that it leads outside."""
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        file.problem(path, f"{name} leads out of the pack")
        return None
    return root / relative


def _primary_keys(file: PackFile) -> dict[str, str]:
    value = file.value.get("primary_keys", {})
    if not isinstance(value, dict):
        file.problem(("primary_keys",), "not an object", actual=shown(value))
        return {}
    return {name: file.text(value, name, ("primary_keys",)) for name in value}


def _absent_ids(file: PackFile) -> dict[str, tuple[Json, ...]]:
    value = file.value.get("absent_ids", {})
    if not isinstance(value, dict):
        file.problem(("absent_ids",), "not an object", actual=shown(value))
        return {}
    absent: dict[str, tuple[Json, ...]] = {}
    for name, found in value.items():
        ids = found if isinstance(found, list) else [found]
        if not ids or any(
            isinstance(item, (dict, list)) or item is None for item in ids
        ):
            file.problem(("absent_ids", name), "not a scalar or a list of scalars")
            continue
        absent[name] = tuple(ids)
    return absent


def _system_prompt(file: PackFile, paths: dict[str, Path]) -> str | None:
    if "system_prompt" in file.value and "system_prompt_path" in file.value:
        file.problem(
            ("system_prompt_path",),
            "system_prompt and system_prompt_path exclude each other",
        )
    path = paths.get("system_prompt")
    if path is None:
        return file.text(file.value, "system_prompt", ()) or None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        file.problem(("system_prompt_path",), "the prompt file is not UTF-8")
        return None


def _confirmation(file: PackFile) -> Confirmation:
    value = file.value.get("confirmation", {})
    names = ("parameter", "status_field", "pending_status")
    if not file.closed(value, ("confirmation",), set(), set(names)):
        return Confirmation()
    default = Confirmation()
    return Confirmation(
        *(file.text(value, n, ("confirmation",), getattr(default, n)) for n in names)
    )


def _exempt_names(file: PackFile) -> frozenset[str]:
    value = file.value.get("surface_guards", {})
    if not file.closed(value, ("surface_guards",), set(), {"tool_names_exempt"}):
        return frozenset()
    return frozenset(file.texts(value, "tool_names_exempt", ("surface_guards",)))


def _docs(file: PackFile, root: Path) -> str | None:
    name = file.text(file.value, "docs", ())
    path = inside(file, root, name, ("docs",)) if name else None
    if path is None:
        return None
    relative = path.relative_to(root).as_posix()
    if relative == "." or not path.is_dir():
        file.problem(("docs",), f"docs names no folder of the pack: {name}")
        return None
    return relative
