"""Which models read how many rows of a publication, asked of its file.

The rules are those of `benchmark.exposure`; here DuckDB reads four columns of the
published table, so memory does not grow with its rows. Ids are hashed as they come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from harness.benchmark.exposure import Exposure, ExposureInventory
from harness.canonical import Json, canonical_json
from harness.errors import SourceError

MEMORY_LIMIT: Final = "256MB"
SHOWN_IDS: Final = 5
"""Task ids that an audit names of each exposure."""
_AT_ONCE: Final = 4096
_TOUCHED: Final = {
    "profile": "shaped",
    "paraphrase": "paraphrased",
    "surface_judge": "true",
}
_ROWS: Final = """
    CREATE TEMP VIEW published AS SELECT
        task_id,
        file_row_number AS position,
        json_extract_string(metadata, '$.profile_hash') IS NOT NULL AS shaped,
        paraphrase_model IS NOT NULL OR paraphrase_model_canonical IS NOT NULL
            AS paraphrased,
        paraphrase_model_canonical AS reader
    FROM read_parquet('{file}', file_row_number = true)
"""
_KINDS: Final = """
    SELECT shaped, paraphrased, reader, arg_min(task_id, position)
    FROM published GROUP BY shaped, paraphrased, reader ORDER BY min(position)
"""


@contextmanager
def database() -> Iterator[Any]:
    """Open an empty DuckDB of bounded memory; what it spills goes when it closes."""
    import duckdb

    with TemporaryDirectory(prefix="fairtrial-audit-") as spill:
        connection = duckdb.connect()
        try:
            connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
            connection.execute(f"SET temp_directory = '{quoted(spill)}'")
            # One thread keeps the order of rows, and memory low.
            connection.execute("SET threads = 1")
            yield connection
        finally:
            connection.close()


def quoted(text: str | Path) -> str:
    """Return a text for the inside of an SQL literal."""
    return str(text).replace("'", "''")


@dataclass(frozen=True, slots=True)
class ExposedRows:
    """An exposure with the count, the hash and the first of its rows."""

    exposure: Exposure
    """Its claim; it holds no task ids."""
    task_count: int
    task_ids_hash: str
    first_task_ids: tuple[str, ...]

    def payload(self) -> dict[str, Json]:
        """Return what reports call an exposure, with the first ids."""
        return {
            "role": self.exposure.role,
            "scope": self.exposure.scope,
            "claim": self.exposure.claim.semantic_payload(),
            "task_count": self.task_count,
            "task_ids_hash": self.task_ids_hash,
            "first_task_ids": list(self.first_task_ids),
        }


class PublishedRows:
    """The published table of one benchmark, open for questions."""

    def __init__(self, connection: Any, table: Path) -> None:
        """Look at the table; raise SourceError if it is none of the contract's."""
        import duckdb

        self._connection = connection
        try:
            connection.execute(_ROWS.format(file=quoted(table)))
            self.count = self._number("SELECT count(*) FROM published")
        except duckdb.Error as error:
            raise SourceError(
                "eval_source_benchmark_schema_mismatch",
                "the table cannot be read",
                where=table.name,
                expected="a Parquet table of the contract",
                actual=str(error).split("\n", 1)[0],
                recovery="publish the benchmark again",
            ) from None

    def exposures(self, manifest: dict[str, Json]) -> tuple[ExposedRows, ...]:
        """Return who read which rows; raise SourceError for a contradiction.

        One row of each kind goes through the inventory that a run uses.
        """
        inventory = ExposureInventory.from_manifest(manifest)
        for shaped, paraphrased, reader, task_id in self._rows(_KINDS):
            inventory.add(
                {
                    "task_id": task_id,
                    "metadata": {"profile_hash": "set" if shaped else None},
                    "paraphrase_model": "set" if paraphrased else None,
                    "paraphrase_model_canonical": reader,
                }
            )
        return tuple(
            self._exposed(Exposure(each.role, each.scope, each.claim, ()))
            for each in inventory.exposures()
        )

    def touched_by(self, roles: Iterable[str]) -> int:
        """Count the rows that any of the roles touched."""
        tests = [_TOUCHED[role] for role in roles]
        where = " OR ".join(tests) or "false"
        query = f"SELECT count(*) FROM published WHERE {where}"  # noqa: S608
        return self._number(query)

    def task_ids_hash(self, test: str = "true") -> tuple[int, str, tuple[str, ...]]:
        """Return count, hash of the ordered ids, and the first of them.

        `test` is one of this module's own conditions.
        """
        digest = hashlib.sha256(b"[")
        count = 0
        first: list[str] = []
        query = f"SELECT task_id FROM published WHERE {test}"  # noqa: S608
        for (task_id,) in self._rows(query):
            digest.update(b"," * bool(count) + canonical_json(task_id).encode())
            count += 1
            if count <= SHOWN_IDS:
                first.append(task_id)
        digest.update(b"]")
        return count, f"sha256:{digest.hexdigest()}", tuple(first)

    def _exposed(self, exposure: Exposure) -> ExposedRows:
        return ExposedRows(exposure, *self.task_ids_hash(_TOUCHED[exposure.role]))

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        result = self._connection.execute(query)
        while rows := result.fetchmany(_AT_ONCE):
            yield from rows
