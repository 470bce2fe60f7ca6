"""Rows to Parquet and back, batch by batch.

The Arrow schema is exactly that of `spec/executable-evaluator.md` 2.2 plus our
nullable text column `slot_bindings`. Tables without that column are read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness.benchmark.rows import COLUMNS, SLOT_BINDINGS, Row
from harness.canonical import Json, canonical_json
from harness.errors import SourceError
from harness.strict_json import DOCUMENT_DEPTH, StrictJsonError, decode

ROWS_A_GROUP: Final = 1024
_ROWS_A_BATCH: Final = 256
_JSON_COLUMNS: Final = ("tools", "metadata", SLOT_BINDINGS)


@cache
def arrow_schema() -> Any:
    """Return the Arrow schema of both tables."""
    import pyarrow as pa

    text, number = pa.string(), pa.int32()
    texts = pa.list_(text)
    function = pa.struct([("name", text), ("arguments", text)])
    tool_call = pa.struct([("id", text), ("type", text), ("function", function)])
    message = pa.struct(
        [
            ("role", text),
            ("content", text),
            ("tool_calls", pa.list_(tool_call)),
            ("tool_call_id", text),
        ]
    )
    expected = pa.struct(
        [
            ("turn_index", number),
            ("call_group", number),
            ("position_in_group", number),
            ("function_name", text),
            ("arguments", pa.map_(text, text)),
        ]
    )
    other = {
        "variant_index": number,
        "messages": pa.list_(message),
        "expected_tool_calls": pa.list_(expected),
        "success_assertions": texts,
        "fixture_refs": texts,
        "required_tools": texts,
        "tools_present": texts,
        "is_multi_turn": pa.bool_(),
        "num_tool_calls": number,
        "call_order_prefix": number,
        "gold_eligible": pa.bool_(),
        "validated_by": texts,
        "seed": pa.uint64(),
        "held_out_hit": pa.bool_(),
    }
    names = (*COLUMNS, SLOT_BINDINGS)
    return pa.schema([(name, other.get(name, text)) for name in names])


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write a table; the same rows give the same bytes under one pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, len(rows), ROWS_A_GROUP):
            encoded = [_encoded(row) for row in rows[start : start + ROWS_A_GROUP]]
            writer.write_table(
                pa.Table.from_pylist(encoded, schema=schema),
                row_group_size=ROWS_A_GROUP,
            )


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table in order, holding one batch at a time.

    Raises SourceError for another schema or a row that does not decode.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as table:
            _check_schema(path, table.schema_arrow)
            number = 0
            for batch in table.iter_batches(batch_size=_ROWS_A_BATCH):
                for encoded in batch.to_pylist(maps_as_pydicts=None):
                    yield _decoded(path, number, encoded)
                    number += 1
    except pa.ArrowException as error:
        raise SourceError(
            "eval_source_benchmark_schema_mismatch",
            "the table cannot be read",
            where=path.name,
            expected="a Parquet table of the contract",
            actual=str(error).split("\n", 1)[0],
            recovery="publish the benchmark again",
        ) from None


def _check_schema(path: Path, found: Any) -> None:
    expected = {field.name: _shape(field.type) for field in arrow_schema()}
    seen = {field.name: _shape(field.type) for field in found}
    names = [name for name in found.names if name != SLOT_BINDINGS]
    wrong = [name for name in seen if seen[name] != expected.get(name)]
    if names != list(COLUMNS) or wrong:
        raise SourceError(
            "eval_source_benchmark_schema_mismatch",
            "the table has other columns than the contract's",
            where=path.name,
            expected=f"{len(COLUMNS)} columns in the contract's order",
            actual=f"missing {sorted(set(COLUMNS) - set(names))}, "
            f"unknown {sorted(set(names) - set(COLUMNS))}, other type or place {wrong}",
            recovery="publish the benchmark again with a conforming generator",
        )


def _shape(kind: Any) -> Json:
    """Return a type without the names of list items, widths of offsets and nullness."""
    from pyarrow import types

    if types.is_map(kind):
        return ["map", _shape(kind.key_type), _shape(kind.item_type)]
    if types.is_list(kind) or types.is_large_list(kind):
        return ["list", _shape(kind.value_type)]
    if types.is_struct(kind):
        return [[f.name, _shape(f.type)] for f in kind]
    if types.is_large_string(kind):
        return "string"
    return str(kind)


def _encoded(row: Row) -> Row:
    encoded = dict(row)
    for name in _JSON_COLUMNS:
        value = row.get(name)
        encoded[name] = None if value is None else canonical_json(value)
    encoded["expected_tool_calls"] = [
        {**call, "arguments": sorted(call["arguments"].items())}
        for call in row["expected_tool_calls"]
    ]
    return encoded


def _decoded(path: Path, number: int, encoded: Row) -> Row:
    row = dict(encoded)
    row.setdefault(SLOT_BINDINGS, None)
    try:
        for name in _JSON_COLUMNS:
            if row[name] is not None or name != SLOT_BINDINGS:
                row[name] = decode(row[name], max_depth=DOCUMENT_DEPTH)
        row["messages"] = [_without_nulls(message) for message in row["messages"]]
        row["expected_tool_calls"] = [
            {**call, "arguments": _mapping(call["arguments"])}
            for call in row["expected_tool_calls"]
        ]
        for call in row["expected_tool_calls"]:
            for text in call["arguments"].values():
                decode(text)
    except (StrictJsonError, TypeError, AttributeError) as error:
        raise SourceError(
            "eval_source_task_index_invalid",
            "a row cannot be decoded",
            where=f"{path.name}, row {number}, task {row.get('task_id')}",
            expected="the contract's codecs: canonical JSON text in tools, metadata, "
            "slot_bindings and gold arguments",
            actual=str(error),
            recovery="publish the benchmark again; no row is ever skipped",
        ) from None
    return row


def _mapping(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for name, text in pairs:
        if name in mapping:
            raise StrictJsonError("duplicate_key", f"gold argument {name!r} repeats")
        mapping[name] = text
    return mapping


def _without_nulls(message: Row) -> Row:
    return {name: value for name, value in message.items() if value is not None}
