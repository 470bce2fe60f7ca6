"""A stored table beside recomputed rows: the first cell that differs is named."""

from functools import partial
from itertools import chain, repeat

import pytest

from harness.errors import EvidenceError
from harness.evidence.task_table import (
    STRETCH,
    TaskTableWriter,
    in_stretches,
    read_stretches,
)
from harness.run.table_comparison import TableComparison
from tests.evidence.samples import row

ROWS = [row(f"t{number}") for number in range(2 * STRETCH + 3)]
LATE = STRETCH + 7


@pytest.fixture(params=["stored", "made"])
def stretches_of(request, tmp_path):
    """Return rows by stretches, out of a file or out of memory."""

    return partial(stored, tmp_path) if request.param == "stored" else in_stretches


def stored(folder, rows):
    path = folder / "t.parquet"
    with TaskTableWriter(path) as table:
        for one in rows:
            table.append(one)
    return read_stretches(path)


def compared(stretches, rows):
    comparison = TableComparison(stretches)
    for one in rows:
        comparison.take(one)
    return comparison.end()


def test_equal_rows_have_no_difference(stretches_of):
    assert compared(stretches_of(ROWS), ROWS) == ()


@pytest.mark.parametrize("place", [0, STRETCH - 1, LATE, len(ROWS) - 1])
def test_the_first_cell_that_differs_is_named(stretches_of, place):
    other = [*ROWS]
    other[place] = row(f"t{place}", attempts=9)
    other[place + 1 :] = [row("later") for _ in other[place + 1 :]]
    (found,) = compared(stretches_of(other), ROWS)

    assert (found.where, found.expected, found.actual) == (
        f"eval_task_results.parquet, row {place}, column attempts",
        str(ROWS[place].attempts),
        "9",
    )


@pytest.mark.parametrize("kept", [0, STRETCH, LATE])
def test_a_row_that_is_missing_is_named(stretches_of, kept):
    (found,) = compared(stretches_of(ROWS[:kept]), ROWS)

    assert f"row {kept}, column candidate_alias" in found.where
    assert found.actual == "null"


@pytest.mark.parametrize("made", [0, STRETCH, LATE])
def test_a_row_too_many_is_named(stretches_of, made):
    (found,) = compared(stretches_of(ROWS), ROWS[:made])

    assert f"row {made}, column candidate_alias" in found.where
    assert found.expected == "null"


def test_a_number_that_no_table_holds_differs(stretches_of):
    (found,) = compared(stretches_of([row()]), [row(latency_ms=1 << 80)])

    assert found.where.endswith("column latency_ms")


def test_a_stored_row_that_no_run_writes_is_refused(tmp_path):
    with pytest.raises(EvidenceError, match="one of"):
        compared(stored(tmp_path, [row(mode="other")]), [row()])


def test_rows_are_counted_with_their_requests():
    comparison = TableComparison(None)
    for one in chain(ROWS[:2], repeat(row(requests=5), 2)):
        comparison.take(one)

    assert (comparison.rows, comparison.requests, comparison.end()) == (
        4,
        2 * ROWS[0].requests + 10,
        (),
    )
