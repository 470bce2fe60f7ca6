"""Reads the recorded conversations of an MLPerf-agentic data set.

One row a message, JSON lines or Parquet, the rows of a conversation together. Rows
are checked and reduced to their ground truth conversation by conversation, so that a
data set never lies whole in memory. Ids stay the text that they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from harness.errors import ScoringError, Violation
from harness.predictions.mlperf_rows import (
    Row,
    conversation_id_of,
    conversation_problems,
    row_problem,
)
from harness.recursion import parse_with_room
from harness.regular_file import open_regular_file
from harness.scoring.mlperf_agentic.recorded import Recorded
from harness.strict_json import is_past_parser_depth

_METADATA: Final = "dataset_metadata"
_SHOWN: Final = 10
"""Violations that one refusal lists; reading stops there."""
_PARQUET: Final = b"PAR1"


class _Numbered(NamedTuple):
    """A row and the line, or the row of a table, where it stands."""

    number: int
    row: Row


def read_dataset(path: Path) -> Recorded:
    """Read a data set.

    Raises ScoringError (`eval_predictions_invalid`) with what is wrong with its rows.
    """
    recorded = Recorded()
    for source_id, rows in read_conversations(path):
        recorded.add_conversation(source_id, rows)
    recorded.sort()
    return recorded


def read_conversations(path: Path) -> Iterator[tuple[str, list[Row]]]:
    """Yield every sound conversation with its rows, sorted by turn.

    Raises as `read_dataset`, at the end of the file or after a page of violations; what
    was yielded before counts for nothing then.
    """
    reader = _Reader(path)
    for name, rows in groupby(
        reader.placed_rows(), key=lambda placed: conversation_id_of(placed.row)
    ):
        ordered = reader.take(str(name), list(rows))
        if ordered is not None:
            yield str(name), ordered
        if len(reader.problems) >= _SHOWN:
            break
    if not reader.has_content and not reader.problems:
        reader.refuse(0, "no row has a content field")
    if reader.problems:
        raise ScoringError.from_violations(tuple(reader.problems[:_SHOWN]))


def is_parquet(path: Path) -> bool:
    """Tell whether a file is Parquet, by its first bytes."""
    with open_regular_file(path) as stream:
        return stream.read(len(_PARQUET)) == _PARQUET


@dataclass(slots=True)
class _Reader:
    """Checks conversations one after the other."""

    path: Path
    problems: list[Violation] = field(default_factory=list)
    has_content: bool = False
    _seen: set[str] = field(default_factory=set)

    def refuse(self, number: int, problem: str) -> None:
        """Note a violation at a row; 0 is the file as a whole."""
        self.problems.append(_violation(self.path, number, problem))

    def placed_rows(self) -> Iterator[_Numbered]:
        """Yield the rows that say where they belong; metadata is left out."""
        for numbered in _rows(self.path):
            if numbered.row.get("_type") == _METADATA:
                continue
            problem = row_problem(numbered.row)
            if problem is None:
                yield numbered
            else:
                self.refuse(numbered.number, problem)
                if len(self.problems) >= _SHOWN:
                    return

    def take(self, source_id: str, rows: list[_Numbered]) -> list[Row] | None:
        """Check one conversation; return its rows by turn where it is sound."""
        if source_id in self._seen:
            self.refuse(rows[0].number, f"rows of {source_id} are not contiguous")
        self._seen.add(source_id)
        self.has_content = self.has_content or any("content" in r.row for r in rows)
        rows.sort(key=lambda numbered: numbered.row["turn"])
        ordered = [numbered.row for numbered in rows]
        found = list(conversation_problems(ordered))
        for index, problem in found:
            self.refuse(rows[index].number, problem)
        return None if found else ordered


def _rows(path: Path) -> Iterator[_Numbered]:
    if is_parquet(path):
        yield from _table_rows(path)
        return
    with open_regular_file(path) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield _Numbered(number, _line_row(path, number, line))


def _line_row(path: Path, number: int, line: bytes) -> Row:
    try:
        text = line.decode("utf-8")
        row = None if is_past_parser_depth(text) else parse_with_room(json.loads, text)
    except RecursionError:
        problem = "nested too deep"
    except ValueError as error:
        problem = str(error)
    else:
        if isinstance(row, dict):
            return row
        problem = "no JSON object, or one that is nested too deep"
    raise ScoringError.from_violations((_violation(path, number, problem),))


def _table_rows(path: Path) -> Iterator[_Numbered]:
    """Yield the rows of a Parquet file; a null is a field that is not there."""
    import pyarrow
    import pyarrow.parquet

    try:
        number = 0
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield _Numbered(number, row)
    except pyarrow.ArrowException as error:
        raise ScoringError.from_violations(
            (_violation(path, 0, f"no readable Parquet file: {error}"),)
        ) from None


def _violation(path: Path, number: int, problem: str) -> Violation:
    return Violation(
        "eval_predictions_invalid",
        f"{path.name}:{number}" if number else path.name,
        problem,
        expected="a data set of recorded conversations, one row a message",
        recovery="mend the data set; nothing was written",
    )
