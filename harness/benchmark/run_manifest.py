"""`run_manifest.json`: the commit marker of a publication, read and checked alone.

Everything that the manifest says about itself is checked here, in the order of
`spec/executable-evaluator.md` 3.3; what it says about tables and pack is for the
reader of those. A foreign manifest may hold more keys; they are kept and not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from harness.canonical import Json, canonical_json, hash_bytes, is_content_hash
from harness.errors import SourceError
from harness.regular_file import read_regular_file
from harness.strict_json import StrictJsonError, decode_document

MANIFEST_NAME: Final = "run_manifest.json"
REQUIRED_FIELDS: Final = (
    "artifacts",
    "created_at",
    "generation_config_hash",
    "gold_eligible",
    "held_out",
    "lineage_policy",
    "models",
    "oracle",
    "oracle_clock",
    "pack",
    "publication",
    "resolved_config_hash",
    "run_id",
    "schema_version",
    "tier",
)
_SCHEMA = re.compile(r"1(\.[0-9]+)?")
PUBLICATION_VERSION: Final = "1.0"
TABLES: Final = {"raw": "benchmark_raw_parquet", "published": "benchmark_parquet"}
Table = Literal["raw", "published"]
_AGAIN: Final = "publish the benchmark again, whole"


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """What the manifest says about one table."""

    file: str
    rows: int
    content_hashes: tuple[str, ...]
    """Every place that declares the bytes; a sound manifest repeats one hash."""


@dataclass(frozen=True, slots=True)
class RunManifest:
    """A commit marker whose own statements are sound."""

    content_hash: str
    value: dict[str, Any]
    raw: TableDeclaration
    published: TableDeclaration

    @property
    def run_id(self) -> str:
        """The publication's id."""
        return str(self.value["run_id"])

    @property
    def gold_eligible(self) -> bool:
        """Tell whether certification found the publication gold."""
        return bool(self.value["gold_eligible"])

    @property
    def oracle_clock(self) -> str:
        """What every task's clock says, ISO-8601."""
        return str(self.value["oracle_clock"])

    @property
    def pack(self) -> dict[str, Any]:
        """`pack_id version content_hash files`, and the algorithm where named."""
        pack: dict[str, Any] = self.value["pack"]
        return pack

    @property
    def ordering(self) -> str:
        """`raw_order` or `selection_rank`."""
        return str(self.value["publication"]["published"]["ordering"])

    @property
    def held_out_evaluated(self) -> bool:
        """Tell whether a held-out policy was applied when publishing."""
        return bool(self.value["held_out"]["evaluated"])


def read_run_manifest(
    path: Path, expected_hash: str, passed: Callable[[str], None]
) -> RunManifest:
    """Read and check a manifest; call `passed` with the name of each check.

    Raises SourceError for the first statement that does not hold. Structure is
    reported before drift, so a file that is no manifest at all is called that.
    """
    data, value = _read(path)
    passed("commit_marker")
    for name in REQUIRED_FIELDS:
        if name not in value:
            raise refusal(name, "a mandatory field is missing", "the field", "nothing")
    for name, kind in _SHAPES.items():
        if not isinstance(value[name], kind):
            raise refusal(name, "a field of another type", kind.__name__, value[name])
    passed("manifest_fields")
    actual = hash_bytes(data)
    if actual != expected_hash:
        raise SourceError(
            "eval_source_manifest_drift",
            "the publication is not the one that the config was loaded with",
            where=MANIFEST_NAME,
            expected=expected_hash,
            actual=actual,
            recovery="load the config again and check what changed",
        )
    passed("manifest_bytes")
    for check in _CHECKS:
        check(value)
        passed(check.__name__.removeprefix("_"))
    raw = _declaration(value, "raw")
    published = _declaration(value, "published")
    passed("publication_contract")
    return RunManifest(actual, value, raw, published)


def refusal(
    where: str, problem: str, expected: str, actual: Json, code: str = ""
) -> SourceError:
    """Build the error of a manifest statement that does not hold."""
    shown = actual if isinstance(actual, str) else canonical_json(actual)
    return SourceError(
        code or "eval_source_manifest_invalid",
        problem,
        where=f"{MANIFEST_NAME}: {where}",
        expected=expected,
        actual=shown[:200],
        recovery=_AGAIN,
    )


_SHAPES: Final[dict[str, type]] = {
    "artifacts": dict,
    "created_at": str,
    "generation_config_hash": str,
    "gold_eligible": bool,
    "held_out": dict,
    "lineage_policy": str,
    "models": dict,
    "oracle": dict,
    "oracle_clock": str,
    "pack": dict,
    "publication": dict,
    "resolved_config_hash": str,
    "run_id": str,
    "schema_version": str,
    "tier": str,
}


def _read(path: Path) -> tuple[bytes, dict[str, Json]]:
    if path.name != MANIFEST_NAME:
        raise SourceError(
            "eval_source_manifest_invalid",
            "a publication is named by its commit marker",
            where=path.name,
            expected=MANIFEST_NAME,
            actual=path.name,
            recovery="name run_manifest.json, never a table",
        )
    if path.is_symlink():
        raise refusal("the file", "a symbolic link", "the file itself", "a link")
    try:
        data = read_regular_file(path)
    except OSError as error:
        raise refusal(
            "the file", "cannot be read", "a file", error.strerror or "an error"
        ) from None
    try:
        value = decode_document(data)
    except StrictJsonError as error:
        raise refusal(
            "the file", "not one strict JSON document", "JSON", f"{error}"
        ) from None
    if not isinstance(value, dict):
        raise refusal("the file", "no object", "a JSON object", value)
    return data, value


def _manifest_schema_version(value: dict[str, Json]) -> None:
    version = value["schema_version"]
    if not _SCHEMA.fullmatch(version):
        raise refusal("schema_version", "an unknown schema", "1 or 1.x", version)


def _source_run_id(value: dict[str, Json]) -> None:
    if not value["run_id"].strip():
        raise refusal("run_id", "an empty id", "a text", value["run_id"])


def _lineage(value: dict[str, Json]) -> None:
    for name in ("generation_config_hash", "resolved_config_hash", "lineage_policy"):
        if not value[name].strip():
            raise refusal(name, "an empty lineage text", "a text", value[name])
    for name in ("created_at", "oracle_clock"):
        try:
            datetime.fromisoformat(value[name])
        except ValueError:
            raise refusal(name, "no time", "ISO-8601", value[name]) from None


def _oracle_kind(value: dict[str, Json]) -> None:
    kind = value["oracle"].get("kind")
    if kind not in ("python", "endpoint"):
        raise refusal("oracle.kind", "unknown", "python or endpoint", kind)
    pack = value["pack"]
    for name in ("pack_id", "version"):
        if not isinstance(pack.get(name), str) or not pack[name]:
            raise refusal(f"pack.{name}", "no text", "a text", pack.get(name))
    if not is_content_hash(pack.get("content_hash")):
        raise refusal(
            "pack.content_hash", "no hash", "sha256:<hex>", pack.get("content_hash")
        )
    files = pack.get("files")
    if not isinstance(files, dict) or not all(map(is_content_hash, files.values())):
        raise refusal("pack.files", "no map of hashes", "name to hash", "other values")


_CHECKS: Final[tuple[Callable[[dict[str, Json]], None], ...]] = (
    _manifest_schema_version,
    _source_run_id,
    _lineage,
    _oracle_kind,
)


def _publication_refusal(
    where: str, problem: str, expected: str, actual: Json
) -> SourceError:
    return refusal(
        f"publication{where}",
        problem,
        expected,
        actual,
        "eval_source_publication_invalid",
    )


def _declaration(value: dict[str, Json], table: Table) -> TableDeclaration:
    publication = value["publication"]
    for name, expected in (
        ("schema_version", PUBLICATION_VERSION),
        ("verified", True),
        ("restated_fields", []),
    ):
        stated = publication.get(name)
        if type(stated) is not type(expected) or stated != expected:
            raise _publication_refusal(
                f".{name}", "another publication contract", f"{expected!r}", stated
            )
    section = publication.get(table)
    if not isinstance(section, dict):
        raise _publication_refusal(f".{table}", "no section", "an object", section)
    file, rows = section.get("file"), section.get("rows")
    if not isinstance(file, str) or Path(file).name != file or not file:
        raise _publication_refusal(
            f".{table}.file", "no file beside the manifest", "a file name", file
        )
    if type(rows) is not int or rows < 0:
        raise _publication_refusal(f".{table}.rows", "no count", "a count", rows)
    if table == "published":
        _check_vocabulary(section)
    hashes = tuple(_hashes(value, section, table))
    return TableDeclaration(file, rows, hashes)


_VOCABULARY: Final[dict[str, tuple[Json, ...]]] = {
    "surface_gate": ("deterministic_guards", "surface_quality"),
    "ordering": ("raw_order", "selection_rank"),
    "dedup_balancing_applied": (True, False),
    "held_out_evaluated": (True, False),
}


def _check_vocabulary(section: dict[str, Json]) -> None:
    for name, words in _VOCABULARY.items():
        stated = section.get(name)
        if type(stated) is not type(words[0]) or stated not in words:
            raise _publication_refusal(
                f".published.{name}", "another word", f"one of {list(words)}", stated
            )
    ranked = section["ordering"] == "selection_rank"
    if ranked != section["dedup_balancing_applied"]:
        raise _publication_refusal(
            ".published.ordering",
            "the ordering does not follow from the selection",
            "selection_rank exactly where dedup_balancing_applied",
            section["ordering"],
        )


def _hashes(
    value: dict[str, Json], section: dict[str, Json], table: Table
) -> Iterator[str]:
    artifact = value["artifacts"].get(TABLES[table])
    places = (
        (f"artifacts.{TABLES[table]}", artifact),
        (f"publication.{table}", section),
    )
    for where, place in places:
        stated = place.get("content_hash") if isinstance(place, dict) else None
        if not is_content_hash(stated):
            raise refusal(
                f"{where}.content_hash",
                "no hash of a table",
                "sha256:<hex>",
                stated,
                "eval_source_publication_invalid",
            )
        yield str(stated)
