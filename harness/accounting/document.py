"""The list of published numbers, read strictly: closed keys, all problems at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from harness.canonical import Json
from harness.errors import UsageError, Violation
from harness.regular_file import require_file
from harness.strict_json import (
    StrictJsonError,
    decode_document,
    has_unpaired_surrogate,
)
from harness.strict_yaml import StrictYamlError, load_yaml

SCHEMA_VERSION: Final = "1"
_MOST_DECIMALS: Final = 40
_SHOWN: Final = 80
"""Most characters of a wrong value that are shown."""


@dataclass(frozen=True, slots=True)
class Published:
    """One number that stands somewhere, with what it rests on."""

    place: str
    """Where it was published, in words."""
    metric: str
    metric_version: str
    """The version under which it was published."""
    value: Decimal
    """With the digits that were given."""
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
                actual=seen,
                recovery="correct the file",
            )
            for where, problem, expected, seen in problems
        )
        raise UsageError(found[0].code, found[0].problem, violations=found)
    return tuple(_published(item, path.parent) for item in document["published"])


def _document(path: Path) -> Json:
    require_file(path, "FILE")
    try:
        if path.suffix == ".json":
            data = path.read_bytes()
            decode_document(data)
            # What is strict JSON is decoded once more for the digits of its numbers.
            return json.loads(data, parse_float=Decimal)
        return load_yaml(path, fraction=Decimal).value
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
        if type(value) not in (int, Decimal) or not math.isfinite(value):
            return False
    except OverflowError:
        return False
    exponent = Decimal(value).as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_MOST_DECIMALS


def _is_text_or_null(value: Json) -> bool:
    return value is None or _is_text(value)


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_Check = tuple[Callable[[Json], bool], str]
_MANDATORY: Final[Mapping[str, _Check]] = {
    "place": (_is_text, "a text"),
    "metric": (_is_text, "a text"),
    "metric_version": (_is_text, "a text, in quotes where it looks like a number"),
    "value": (_is_number, f"a finite number of at most {_MOST_DECIMALS} decimals"),
    "run": (_is_text_or_null, "a folder, or null where no run was kept"),
}
_OPTIONAL: Final[Mapping[str, _Check]] = {
    "subject": (_is_text_or_null, "the name of a party of the run"),
    "evidence": (_is_texts, "a list of files"),
    "replication": (_is_text_or_null, "a folder"),
}
_KEYS: Final = {**_MANDATORY, **_OPTIONAL}


_Problem = tuple[str, str, str, str]
"""Place, problem, what was expected, what was seen."""


def _problems(document: Json) -> Iterator[_Problem]:
    wanted = "schema_version and published"
    if not isinstance(document, dict):
        yield "", "the document is no mapping", wanted, _seen(document)
        return
    if document.keys() != {"schema_version", "published"}:
        yield "", "the document has other keys", wanted, _seen(", ".join(document))
        return
    version, items = document["schema_version"], document["published"]
    if version != SCHEMA_VERSION:
        yield "schema_version", "another version", f'"{SCHEMA_VERSION}"', _seen(version)
    if not isinstance(items, list) or not items:
        yield "published", "no list of numbers", "one entry a number", _seen(items)
        return
    for index, item in enumerate(items):
        yield from _item_problems(item, f"published[{index}]")


def _item_problems(item: Json, where: str) -> Iterator[_Problem]:
    if not isinstance(item, dict):
        yield where, "an entry is no mapping", ", ".join(_MANDATORY), _seen(item)
        return
    for name in sorted(item.keys() - _KEYS.keys()):
        only = ", ".join(_KEYS)
        yield f"{where}.{name}", "a key that does not exist here", only, name
    for name, (_, wanted) in _MANDATORY.items():
        if name not in item:
            yield f"{where}.{name}", "a mandatory key is missing", wanted, "no such key"
    for name, (is_sound, wanted) in _KEYS.items():
        if name in item and not is_sound(item[name]):
            problem = "a value of another form"
            yield f"{where}.{name}", problem, wanted, _seen(item[name])


def _seen(value: Json) -> str:
    text = str(value) if isinstance(value, str | Decimal) else repr(value)
    return text[:_SHOWN] or "an empty text"


def _published(item: Mapping[str, Json], base: Path) -> Published:
    return Published(
        place=item["place"],
        metric=item["metric"],
        metric_version=item["metric_version"],
        value=Decimal(item["value"]),
        run=_folder(item["run"], base),
        subject=item.get("subject"),
        evidence=tuple(base / name for name in item.get("evidence", ())),
        replication=_folder(item.get("replication"), base),
    )


def _folder(text: str | None, base: Path) -> Path | None:
    return None if text is None else base / text
