"""Both tables of a publication, held to the manifest and to each other.

The publication is replayed: every published row is a raw row, byte for byte in
canonical JSON, in the declared order (`spec/executable-evaluator.md` 2.6). Rows go by
one at a time; what stays is a task's id, a hash of its raw row and a few counts.
"""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.benchmark.exposure import Exposure, ExposureInventory
from harness.benchmark.rows import Row, row_hash
from harness.benchmark.run_manifest import RunManifest, TableDeclaration
from harness.benchmark.tables import read_rows
from harness.benchmark.task_ids import task_id_problem
from harness.canonical import Json, content_hash, hash_file
from harness.conversation.script import CallOrder, script_from_row
from harness.conversation.task import TurnPolicy
from harness.errors import ConversationError, SourceError
from harness.strict_json import StrictJsonError

_NULLABLE: Final = frozenset(
    {
        "category",
        "difficulty",
        "call_order_prefix",
        "paraphrase_model",
        "paraphrase_model_canonical",
        "held_out_hit",
        "slot_bindings",
    }
)
_METADATA: Final = frozenset(
    {"language", "expt_name", "base_task_id", "surface_source", "profile_hash"}
)
_STAGES: Final = frozenset({"schema", "replay", "assertions"})
_WORDS: Final = {
    "turn_policy": frozenset(typing.get_args(TurnPolicy)),
    "call_order": frozenset(typing.get_args(CallOrder)),
}


@dataclass(slots=True)
class TaskIndex:
    """What is known of the published tasks without their rows."""

    task_ids: list[str] = field(default_factory=list)
    """In publication order."""
    gold_task_ids: list[str] = field(default_factory=list)
    categories: Counter[str] = field(default_factory=Counter)
    difficulties: Counter[str] = field(default_factory=Counter)
    turn_policies: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Count one row."""
        self.task_ids.append(row["task_id"])
        if row["gold_eligible"]:
            self.gold_task_ids.append(row["task_id"])
        self.categories[row["category"] or "(none)"] += 1
        self.difficulties[row["difficulty"] or "(none)"] += 1
        self.turn_policies[row["turn_policy"]] += 1

    def payload(self) -> dict[str, Json]:
        """Return the index as identities and reports have it."""
        return {
            "task_count": len(self.task_ids),
            "task_ids_hash": content_hash(self.task_ids),
            "gold_task_count": len(self.gold_task_ids),
            "gold_task_ids_hash": content_hash(self.gold_task_ids),
            "categories": dict(sorted(self.categories.items())),
            "difficulties": dict(sorted(self.difficulties.items())),
            "turn_policies": dict(sorted(self.turn_policies.items())),
        }


class TableChecker:
    """Checks the tables of one manifest; every refusal is a SourceError."""

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        self.manifest = manifest
        self.raw = folder / manifest.raw.file
        self.published = folder / manifest.published.file
        self.raw_rows: dict[str, tuple[int, str]] = {}
        self.index = TaskIndex()
        self.seen: set[str] = set()
        self.inventory: ExposureInventory | None = None
        self.late: dict[str, SourceError] = {}
        """First refusal of each check that comes after the publication replay."""

    def check_bytes(
        self, config_hash: str | None, passed: Callable[[str], None]
    ) -> None:
        """Hash both tables against every place that declares them."""
        _check_bytes(self.raw, self.manifest.raw, ())
        passed("raw_bytes")
        declared = () if config_hash is None else (config_hash,)
        _check_bytes(self.published, self.manifest.published, declared)
        passed("published_bytes")
        self._check_held_out_verdict()
        passed("held_out_verdict")

    def check_rows(
        self, passed: Callable[[str], None]
    ) -> Callable[[], tuple[Exposure, ...]]:
        """Replay the publication and decode every row.

        Returns the check of the model inventory, which comes after the oracle's.
        """
        for position, row in enumerate(read_rows(self.raw)):
            self._raw_row(position, row)
        _check_count(self.manifest.raw, len(self.raw_rows))
        before, count = -1, 0
        for row in read_rows(self.published):
            before = self._published_row(row, before)
            count += 1
            self._late("row_decoding", self._decode, row)
            self._late("task_index", self._address, row)
            if not self.late.keys() & {"row_decoding", "task_index"}:
                self._late("model_exposure", self._expose, row)
        _check_count(self.manifest.published, count)
        passed("publication_semantics")
        for check in ("row_decoding", "task_index"):
            self._raise(check)
            passed(check)
        return self._inventory

    def _expose(self, row: Row) -> None:
        if self.inventory is None:
            self.inventory = ExposureInventory.from_manifest(self.manifest.value)
        self.inventory.add(row)

    def _inventory(self) -> tuple[Exposure, ...]:
        self._raise("model_exposure")
        manifest = self.manifest.value
        inventory = self.inventory or ExposureInventory.from_manifest(manifest)
        return inventory.exposures()

    def _late(self, check: str, test: Callable[[Row], None], row: Row) -> None:
        try:
            test(row)
        except SourceError as error:
            self.late.setdefault(check, error)

    def _raise(self, check: str) -> None:
        if check in self.late:
            raise self.late[check]

    def _check_held_out_verdict(self) -> None:
        published = self.manifest.value["publication"]["published"]
        stated = self.manifest.value["held_out"].get("evaluated")
        if stated is not published["held_out_evaluated"]:
            raise _unsound(
                "held_out.evaluated",
                "the held-out verdicts of manifest and publication differ",
                f"{published['held_out_evaluated']}",
                f"{stated}",
            )

    def _raw_row(self, position: int, row: Row) -> None:
        task_id = row["task_id"]
        if not isinstance(task_id, str) or task_id in self.raw_rows:
            raise _unsound(
                f"{self.raw.name}, row {position}",
                "a raw row cannot be addressed",
                "a task id of its own",
                f"{task_id}",
            )
        evaluated = self.manifest.held_out_evaluated
        if (row["held_out_hit"] is not None) != evaluated:
            raise _unsound(
                f"{self.raw.name}, task {task_id}: held_out_hit",
                "a row contradicts the held-out verdict",
                "true or false" if evaluated else "null",
                f"{row['held_out_hit']}",
            )
        self.raw_rows[task_id] = (position, row_hash(row))

    def _published_row(self, row: Row, before: int) -> int:
        task_id = row["task_id"]
        where = f"{self.published.name}, task {task_id}"
        found = self.raw_rows.get(task_id)
        if found is None:
            raise _unsound(where, "a published row that is no raw row", "a raw row", "")
        position, raw_hash = found
        if row_hash(row) != raw_hash:
            raise _unsound(
                where, "a published row differs from its raw row", raw_hash, "another"
            )
        if row["held_out_hit"]:
            raise _unsound(
                where, "a held-out row is published", "held_out_hit: false", "true"
            )
        if self.manifest.ordering == "raw_order" and position < before:
            raise _unsound(
                where,
                "the published order is not the raw order",
                f"a row after raw row {before}",
                f"raw row {position}",
            )
        return position

    def _decode(self, row: Row) -> None:
        problem = _row_problem(row, self.manifest)
        if problem:
            raise _unreadable(self.published.name, row, problem)
        try:
            script_from_row(row, "")
        except ConversationError as error:
            first = error.violations[0]
            raise _unreadable(
                self.published.name, row, f"{first.where}: {first.problem}"
            ) from None
        except (StrictJsonError, KeyError, TypeError, AttributeError) as error:
            detail = f"{type(error).__name__}: {error}"
            raise _unreadable(self.published.name, row, detail) from None

    def _address(self, row: Row) -> None:
        task_id = row["task_id"]
        problem = task_id_problem(task_id)
        if problem is None and task_id in self.seen:
            problem = "repeats"
        if problem:
            raise SourceError(
                "eval_source_task_index_invalid",
                f"a task id {problem}",
                where=f"{self.published.name}, row {len(self.index.task_ids)}",
                expected="a unique id of 1 to 200 characters that can name a file",
                actual=f"{task_id!r}"[:220],
                recovery="publish the benchmark again",
            )
        self.seen.add(task_id)
        self.index.add(row)


def _row_problem(row: Row, manifest: RunManifest) -> str | None:
    """Return what keeps a row from being one of this publication."""
    empty = [name for name in row if row[name] is None and name not in _NULLABLE]
    if empty:
        return f"{empty[0]} is null"
    for name, words in _WORDS.items():
        if row[name] not in words:
            return f"{name} is {row[name]!r}, no word of the contract"
    metadata = row["metadata"]
    if not isinstance(metadata, dict) or metadata.keys() != _METADATA:
        return f"metadata has other keys than {sorted(_METADATA)}"
    if not isinstance(row["tools"], list):
        return "tools is no list"
    if row["num_tool_calls"] != len(row["expected_tool_calls"]):
        return "num_tool_calls is not the number of expected_tool_calls"
    if (row["call_order_prefix"] is not None) != (row["call_order"] == "prefix"):
        return "call_order_prefix does not follow from call_order"
    if not _STAGES.issuperset(row["validated_by"]):
        return f"validated_by names more than {sorted(_STAGES)}"
    pack = (row["pack_id"], row["pack_version"])
    if pack != (manifest.pack["pack_id"], manifest.pack["version"]):
        return f"the row is of pack {pack[0]} {pack[1]}"
    return None


def _check_bytes(
    path: Path, declaration: TableDeclaration, more: tuple[str, ...]
) -> None:
    if path.is_symlink():
        raise _unsound(
            path.name, "a table is a symbolic link", "a plain file", "a link"
        )
    try:
        actual = hash_file(path)
    except OSError as error:
        raise SourceError(
            "eval_source_invalid",
            "a table of the publication cannot be read",
            where=path.name,
            expected="the table beside run_manifest.json",
            actual=error.strerror or "unreadable",
            recovery="copy the whole publication folder",
        ) from None
    for expected in (*declaration.content_hashes, *more):
        if actual != expected:
            raise SourceError(
                "eval_source_benchmark_hash_mismatch",
                "a table is not the one that the manifest declares",
                where=path.name,
                expected=expected,
                actual=actual,
                recovery="restore the published file; publications are never edited",
            )


def _check_count(declaration: TableDeclaration, rows: int) -> None:
    if declaration.rows != rows:
        raise _unsound(
            declaration.file,
            "a table has another number of rows than declared",
            f"{declaration.rows}",
            f"{rows}",
        )


def _unsound(where: str, problem: str, expected: str, actual: str) -> SourceError:
    return SourceError(
        "eval_source_publication_invalid",
        problem,
        where=where,
        expected=expected,
        actual=actual,
        recovery="publish the benchmark again, whole",
    )


def _unreadable(table: str, row: Row, problem: str) -> SourceError:
    return SourceError(
        "eval_source_task_index_invalid",
        f"a row cannot be asked: {problem}",
        where=f"{table}, task {row['task_id']}",
        expected="a row of the contract that reads as a conversation",
        recovery="publish the benchmark again; no row is ever skipped",
    )
