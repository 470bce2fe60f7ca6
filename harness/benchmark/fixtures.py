"""`fixtures.json`, primary keys, absent ids and the held-out file.

Fixtures are collections of row objects; they are the state that every task starts
from, and the source of slot values. A row is named by its collection and the text
of its primary key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.benchmark.manifest import PackManifest
from harness.benchmark.problems import PackFile, shown
from harness.canonical import Json, canonical_json

Row = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Fixtures:
    """The collections and the primary key of each, where one is known."""

    collections: dict[str, tuple[Row, ...]]
    primary_keys: dict[str, str]
    absent_ids: dict[str, tuple[Json, ...]]

    def reference(self, collection: str, row: Row) -> str | None:
        """Return the row's reference, canonical JSON `[collection, id-as-text]`."""
        key = self.primary_keys.get(collection)
        if key is None or key not in row:
            return None
        return canonical_json([collection, id_text(row[key])])


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Ids that are kept from published tasks; loaded and checked, not evaluated."""

    version: str
    fixtures: dict[str, tuple[Json, ...]]
    templates: tuple[str, ...]
    policy: dict[str, Json]


def id_text(value: Json) -> str:
    """Return the text form of a scalar id."""
    return value if isinstance(value, str) else canonical_json(value)


def read_fixtures(
    file: PackFile | None, manifest: PackManifest, at: PackFile
) -> Fixtures:
    """Read the fixtures; `at` is the manifest, where keys and absent ids stand."""
    collections: dict[str, tuple[Row, ...]] = {}
    if file is not None:
        collections = _collections(file)
    keys = _primary_keys(collections, manifest, at)
    _check_absent(collections, keys, manifest, at)
    return Fixtures(collections, keys, manifest.absent_ids)


def _collections(file: PackFile) -> dict[str, tuple[Row, ...]]:
    if not isinstance(file.value, dict):
        file.problem((), "not an object of collections", actual=shown(file.value))
        return {}
    collections: dict[str, tuple[Row, ...]] = {}
    for name, rows in file.value.items():
        if not isinstance(rows, list):
            file.problem((name,), "not a list of rows", actual=shown(rows))
            continue
        for index, row in enumerate(rows):
            if not isinstance(row, dict):
                file.problem((name, index), "not a row object", actual=shown(row))
        collections[name] = tuple(row for row in rows if isinstance(row, dict))
    return collections


_PLURALS: Final = (
    ("ies", "y"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ches", "ch"),
    ("s", ""),
)


def _singular(name: str) -> str:
    for ending, replacement in _PLURALS:
        if name.endswith(ending):
            return name.removesuffix(ending) + replacement
    return name


def _primary_keys(
    collections: dict[str, tuple[Row, ...]], manifest: PackManifest, at: PackFile
) -> dict[str, str]:
    for name in manifest.primary_keys.keys() - collections.keys():
        at.problem(("primary_keys", name), f"the fixtures have no collection {name!r}")
    keys: dict[str, str] = {}
    for name, rows in collections.items():
        declared = manifest.primary_keys.get(name)
        found = [
            key
            for key in dict.fromkeys((f"{_singular(name)}_id", "id"))
            if rows and all(key in row for row in rows)
        ]
        if declared is None and len(found) > 1:
            at.problem(
                ("primary_keys",),
                f"collection {name!r} has two id fields",
                expected=f"primary_keys.{name}: one of {found}",
            )
            continue
        key = declared or (found[0] if found else None)
        if key is None or not _names_every_row(key, rows):
            if declared is not None:
                at.problem(
                    ("primary_keys", name),
                    f"{declared!r} does not name every row of {name!r} once",
                    expected="one scalar id a row, no id twice",
                )
            continue
        keys[name] = key
    return keys


def _names_every_row(key: str, rows: tuple[Row, ...]) -> bool:
    texts = [id_text(row[key]) for row in rows if _scalar(row.get(key))]
    return len(texts) == len(rows) == len(set(texts))


def _scalar(value: Json) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _check_absent(
    collections: dict[str, tuple[Row, ...]],
    keys: dict[str, str],
    manifest: PackManifest,
    at: PackFile,
) -> None:
    for name, absent in manifest.absent_ids.items():
        path = ("absent_ids", name)
        if name not in collections:
            at.problem(path, f"the fixtures have no collection {name!r}")
            continue
        if name not in keys:
            at.problem(
                path, f"collection {name!r} has no primary key; name it in primary_keys"
            )
            continue
        present = {id_text(row[keys[name]]) for row in collections[name]}
        for value in absent:
            if id_text(value) in present:
                at.problem(path, f"{id_text(value)} is declared absent but exists")


def read_held_out(
    file: PackFile, fixtures: Fixtures, template_ids: tuple[str, ...]
) -> HeldOut | None:
    """Read and check `held_out.yaml`; report every problem."""
    value = file.value
    if not file.closed(value, (), {"version"}, {"fixtures", "templates", "policy"}):
        return None
    templates = file.texts(value, "templates", ())
    for name in templates:
        if name not in template_ids:
            file.problem(("templates",), f"no template has the id {name!r}")
    reserved = value.get("fixtures", {})
    held: dict[str, tuple[Json, ...]] = {}
    if not isinstance(reserved, dict):
        file.problem(("fixtures",), "not an object", actual=shown(reserved))
        reserved = {}
    for name, ids in reserved.items():
        held[name] = _held_ids(file, name, ids, fixtures)
    policy = value.get("policy", {})
    if file.closed(policy, ("policy",), set(), {"fixtures_in_backend_state", "seed"}):
        file.flag(policy, "fixtures_in_backend_state", ("policy",), default=True)
        if type(policy.get("seed", 0)) is not int:
            file.problem(("policy", "seed"), "seed is no integer")
    return HeldOut(id_text(value["version"]), held, templates, policy)


def _held_ids(
    file: PackFile, name: str, ids: Json, fixtures: Fixtures
) -> tuple[Json, ...]:
    path = ("fixtures", name)
    key = fixtures.primary_keys.get(name)
    if key is None:
        file.problem(path, f"no collection {name!r} with a primary key")
        return ()
    if not isinstance(ids, list) or not all(_scalar(item) for item in ids):
        file.problem(path, "not a list of ids", actual=shown(ids))
        return ()
    present = {id_text(row[key]) for row in fixtures.collections[name]}
    absent = {id_text(item) for item in fixtures.absent_ids.get(name, ())}
    seen: set[str] = set()
    for item in ids:
        text = id_text(item)
        if text in seen:
            file.problem(path, f"id {text} repeats")
        if text in absent:
            file.problem(path, f"id {text} is declared absent")
        elif text not in present:
            file.problem(path, f"no row has the id {text}")
        seen.add(text)
    return tuple(ids)
