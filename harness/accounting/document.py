"""The list of published numbers, read strictly: closed keys, all problems at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.errors import UsageError, Violation
from harness.strict_json import (
    StrictJsonError,
    decode_document,
    has_unpaired_surrogate,
)
from harness.strict_yaml import StrictYamlError, load_yaml

SCHEMA_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class Published:
    """One number that stands somewhere, with what it rests on."""

    place: str
    """Where it was published, in words."""
    metric: str
    metric_version: str
    """The version under which it was published."""
    value: float
    run: Path | None
    """Folder of its evaluation; None where none was kept."""
    subject: str | None
    """Which party of the run; None where the run has one candidate."""
    evidence: tuple[Path, ...]
    """Files that were scored and lie outside the folder."""
    replication: Path | None
    """Folder of a later run that replaces it."""


def read_published(path: Path) -> tuple[Published, ...]:
    """Read a list; raise UsageError with everything that is wrong with it."""
    document = _document(path)
    problems = list(_problems(document))
    if problems:
        found = tuple(
            Violation(
                "eval_cli_invalid",
                f"{path.name}, {where}" if where else path.name,
                problem,
                expected,
                recovery="correct the file",
            )
            for where, problem, expected in problems
        )
        raise UsageError(found[0].code, found[0].problem, violations=found)
    return tuple(_published(item, path.parent) for item in document["published"])


def _document(path: Path) -> Json:
    try:
        if path.suffix == ".json":
            return decode_document(path.read_bytes())
        return load_yaml(path).value
    except (StrictYamlError, StrictJsonError, OSError) as error:
        raise UsageError(
            "eval_cli_invalid",
            "the list of published numbers cannot be read",
            where=path.name,
            expected="a file of strict YAML, or of strict JSON called *.json",
            actual=str(error),
            recovery="name such a file",
        ) from None


def _is_text(value: Json) -> bool:
    return (
        isinstance(value, str)
        and bool(value.strip())
        and not has_unpaired_surrogate(value)
    )


def _is_number(value: Json) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False


def _is_text_or_null(value: Json) -> bool:
    return value is None or _is_text(value)


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_Check = tuple[Callable[[Json], bool], str]
_MANDATORY: Final[Mapping[str, _Check]] = {
    "place": (_is_text, "a text"),
    "metric": (_is_text, "a text"),
    "metric_version": (_is_text, "a text, in quotes where it looks like a number"),
    "value": (_is_number, "a finite number"),
    "run": (_is_text_or_null, "a folder, or null where no run was kept"),
}
_OPTIONAL: Final[Mapping[str, _Check]] = {
    "subject": (_is_text_or_null, "the name of a party of the run"),
    "evidence": (_is_texts, "a list of files"),
    "replication": (_is_text_or_null, "a folder"),
}
_KEYS: Final = {**_MANDATORY, **_OPTIONAL}


def _problems(document: Json) -> Iterator[tuple[str, str, str]]:
    """Yield place, problem and what was expected."""
    keys = {"schema_version", "published"}
    if not isinstance(document, dict) or document.keys() != keys:
        yield "", "the document has other keys", "schema_version and published"
        return
    if document["schema_version"] != SCHEMA_VERSION:
        yield "schema_version", "another version", f'"{SCHEMA_VERSION}"'
    items = document["published"]
    if not isinstance(items, list) or not items:
        yield "published", "no list of numbers", "one entry a number"
        return
    for index, item in enumerate(items):
        yield from _item_problems(item, f"published[{index}]")


def _item_problems(item: Json, where: str) -> Iterator[tuple[str, str, str]]:
    if not isinstance(item, dict):
        yield where, "an entry is no mapping", ", ".join(_MANDATORY)
        return
    for name in item.keys() - _KEYS.keys():
        yield f"{where}.{name}", "a key that does not exist here", ", ".join(_KEYS)
    for name in _MANDATORY.keys() - item.keys():
        yield f"{where}.{name}", "a mandatory key is missing", _MANDATORY[name][1]
    for name, (is_sound, expected) in _KEYS.items():
        if name in item and not is_sound(item[name]):
            yield f"{where}.{name}", "a value of another form", expected


def _published(item: Mapping[str, Json], base: Path) -> Published:
    return Published(
        place=item["place"],
        metric=item["metric"],
        metric_version=item["metric_version"],
        value=item["value"],
        run=_folder(item["run"], base),
        subject=item.get("subject"),
        evidence=tuple(base / name for name in item.get("evidence", ())),
        replication=_folder(item.get("replication"), base),
    )


def _folder(text: str | None, base: Path) -> Path | None:
    return None if text is None else base / text
