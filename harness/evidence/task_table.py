"""`eval_task_results.parquet`: the task table, streamed to and from disk.

Rows are written in row groups as they come, in the order in which they come, so
memory holds one group. The file appears when it is complete. A table that exists
already must hold equal rows; its bytes may differ, since they depend on the version
of pyarrow. A reader that only asks whether rows are the stored ones compares columns,
a stretch of rows at a time. pyarrow and duckdb are imported where they are used.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import islice, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, Self

from harness.canonical import canonical_json, hash_file
from harness.errors import ArtifactError
from harness.evidence.artifacts import conflict
from harness.evidence.disk import machine_refusals, publish_file, temporary_beside
from harness.evidence.records import Record
from harness.evidence.task_row import TaskRow
from harness.regular_file import open_regular_file

ROW_GROUP_SIZE: Final = 2048
"""Rows a group; part of the file's form, so it is fixed."""
STRETCH: Final = 256
"""Rows that are turned into columns at once; a divisor of a group."""
_cells_of = attrgetter(*(field.name for field in fields(TaskRow)))


@cache
def table_schema() -> Any:
    """Return the Arrow schema: the fields of `TaskRow`, null only where declared."""
    return _fields_of(TaskRow, as_schema=True)


def _fields_of(record: type[Record], *, as_schema: bool) -> Any:
    import pyarrow as pa

    fields = [
        pa.field(name, _arrow_type(hint), nullable=_is_optional(hint))
        for name, hint in typing.get_type_hints(record).items()
        if typing.get_origin(hint) is not typing.ClassVar
    ]
    return pa.schema(fields) if as_schema else pa.struct(fields)


def _is_optional(hint: Any) -> bool:
    return types.NoneType in typing.get_args(hint)


def _arrow_type(hint: Any) -> Any:
    import pyarrow as pa

    if _is_optional(hint):
        (hint,) = (a for a in typing.get_args(hint) if a is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return pa.list_(pa.field("element", _arrow_type(inner), nullable=False))
    if isinstance(hint, type) and issubclass(hint, Record):
        return _fields_of(hint, as_schema=False)
    return {bool: pa.bool_(), int: pa.int64()}.get(hint, pa.string())


def _columns(rows: Sequence[TaskRow], schema: Any) -> Any:
    """Return rows in Arrow's form, a fifth of their size; raises as Arrow does."""
    import pyarrow as pa

    cells = zip(*map(_cells_of, rows), strict=True)
    arrays = []
    for kind, column in zip(schema.types, cells, strict=True):
        if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            plain = [[each.semantic_payload() for each in cell] for cell in column]
            arrays.append(pa.array(plain, kind))
        else:
            arrays.append(pa.array(column, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class TaskTableWriter:
    """Writes the table; a context manager that gives it its name on success.

    Leaving the block with an error leaves no file. Raises ArtifactError
    (`eval_cli_artifact_conflict`) when the table exists with other rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = temporary_beside(path)
        self._rows: list[TaskRow] = []
        self._batches: list[Any] = []
        """What of the present group is in Arrow's form already."""
        self._writer: Any = None
        self._schema: Any = None

    def __enter__(self) -> Self:
        import pyarrow.parquet as pq

        self._schema = table_schema()
        with machine_refusals("write the task table", self._path):
            self._writer = pq.ParquetWriter(
                self._temporary, self._schema, compression="zstd", version="2.6"
            )
        return self

    def append(self, row: TaskRow) -> None:
        """Add one row; every `ROW_GROUP_SIZE` rows a group goes to disk."""
        self._rows.append(row)
        if len(self._rows) == STRETCH:
            self._pack()
            if len(self._batches) * STRETCH == ROW_GROUP_SIZE:
                self._write_group()

    def _pack(self) -> None:
        self._batches.append(_columns(self._rows, self._schema))
        self._rows.clear()

    def _write_group(self) -> None:
        import pyarrow as pa

        group = pa.Table.from_batches(self._batches).combine_chunks()
        self._batches.clear()
        with machine_refusals("write the task table", self._path):
            self._writer.write_table(group, row_group_size=ROW_GROUP_SIZE)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                if self._rows:
                    self._pack()
                if self._batches:
                    self._write_group()
                with machine_refusals("write the task table", self._path):
                    self._writer.close()
                    self._publish()
        finally:
            # A second close ends a half-written file, whose disk may be full.
            with suppress(OSError):
                self._writer.close()
            self._temporary.unlink(missing_ok=True)

    def _publish(self) -> None:
        self._temporary.chmod(0o600)
        if not self._path.exists():
            publish_file(self._temporary, self._path)
            return
        if hash_file(self._temporary) == hash_file(self._path):
            return
        rows = zip_longest(read_task_rows(self._temporary), read_task_rows(self._path))
        for position, (new, old) in enumerate(rows):
            if new != old:
                raise conflict(
                    self._path,
                    f"row {position}: {_as_text(new)}",
                    f"row {position}: {_as_text(old)}",
                )


def _as_text(row: TaskRow | None) -> str:
    return "none" if row is None else canonical_json(row.semantic_payload())[:400]


class Stretch(Protocol):
    """Rows of a table that follow each other: `STRETCH` of them, fewer at the end."""

    def holds(self, rows: Sequence[TaskRow]) -> bool:
        """Tell whether these are the rows."""

    def rows(self) -> Sequence[TaskRow]:
        """Return the rows; raise ArtifactError for what no row can be."""


class StoredStretch:
    """A stretch of a stored table; its rows are made only when they are asked for."""

    def __init__(self, columns: Any, name: str) -> None:
        self._columns = columns
        self._name = name

    def holds(self, rows: Sequence[TaskRow]) -> bool:
        """Tell whether these are the rows."""
        import pyarrow as pa

        if len(rows) != len(self._columns):
            return False
        try:
            columns = _columns(rows, table_schema())
        except (ValueError, TypeError, OverflowError):
            # What has no form of Arrow's is in no table.
            return False
        return bool(self._columns.equals(pa.Table.from_batches([columns])))

    def rows(self) -> list[TaskRow]:
        """Return the rows; raise EvidenceError for what no row can be."""
        return [
            TaskRow.from_payload(row, self._name) for row in self._columns.to_pylist()
        ]


class MadeStretch(NamedTuple):
    """A stretch of rows that were just made."""

    made: list[TaskRow]

    def holds(self, rows: Sequence[TaskRow]) -> bool:
        """Tell whether these are the rows."""
        return self.made == list(rows)

    def rows(self) -> list[TaskRow]:
        """Return the rows."""
        return self.made


def in_stretches(rows: Iterable[TaskRow]) -> Iterator[MadeStretch]:
    """Yield rows by stretches."""
    left = iter(rows)
    while stretch := list(islice(left, STRETCH)):
        yield MadeStretch(stretch)


def read_task_rows(path: Path) -> Iterator[TaskRow]:
    """Yield the rows in order, holding one row group.

    Raises ArtifactError (`eval_artifact_invalid`) for a file of another shape.
    """
    for stretch in read_stretches(path):
        yield from stretch.rows()


def read_stretches(path: Path) -> Iterator[StoredStretch]:
    """Yield the rows by stretches; raises as `read_task_rows` does."""
    with (
        machine_refusals("read the task table", path),
        open_regular_file(path) as stream,
    ):
        yield from stretches(stream, path.name)


def stretches(stream: BinaryIO, name: str) -> Iterator[StoredStretch]:
    """Yield the rows of an open table; raises as `read_task_rows` does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(stream)
        if not table.schema_arrow.equals(table_schema(), check_metadata=False):
            raise _unreadable(name, f"columns {table.schema_arrow.names}")
        left = table_schema().empty_table()
        for group in range(table.num_row_groups):
            left = pa.concat_tables([left, table.read_row_group(group)])
            while len(left) >= STRETCH:
                yield StoredStretch(left.slice(0, STRETCH), name)
                left = left.slice(STRETCH)
        if len(left):
            yield StoredStretch(left, name)
    except (pa.ArrowException, OSError, ValueError) as error:
        # Arrow reports a broken page as any of these.
        raise _unreadable(name, str(error)) from None


def _unreadable(name: str, actual: str) -> ArtifactError:
    return ArtifactError(
        "eval_artifact_invalid",
        "the task table cannot be read",
        where=name,
        expected=f"a Parquet file with the columns {', '.join(table_schema().names)}",
        actual=actual,
        recovery="bring back an intact copy of the run folder",
    )


def connect_task_table(path: Path) -> Any:
    """Return a DuckDB connection with the table as the view `tasks`."""
    import duckdb

    connection = duckdb.connect()
    connection.read_parquet(str(path)).create_view("tasks")
    return connection
