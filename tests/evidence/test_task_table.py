"""The task table streams, reads back as it was, and never changes."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import hash_file
from harness.errors import ArtifactError
from harness.evidence.task_table import (
    ROW_GROUP_SIZE,
    TaskTableWriter,
    connect_task_table,
    read_task_rows,
    table_schema,
)
from harness.scoring.records import FailureRecord
from tests.evidence.samples import row

CONTRACT_COLUMNS = {
    "candidate_alias": "string",
    "candidate_canonical_id": "string",
    "task_id": "string",
    "mode": "string",
    "episode_status": "string",
    "non_candidate_stop": "bool",
    "task_success": "bool",
    "failure_codes": "list<element: string not null>",
    "failure_records": (
        "list<element: struct<layer: string not null, code: string not null, "
        "attribution: string not null, subject: string not null> not null>"
    ),
}
NULLABLE_GATES = [
    "schema_valid",
    "tool_name_correct",
    "arguments_correct",
    "call_group_correct",
    "call_order_correct",
    "required_subset_correct",
    "milestones_correct",
    "execution_success",
    "assertions_passed",
    "final_answer_passed",
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "eval_task_results.parquet"


def write(path, rows):
    with TaskTableWriter(path) as table:
        for one in rows:
            table.append(one)


def test_columns_are_those_of_the_contract_and_then_ours():
    schema = table_schema()
    required = {f.name: str(f.type) for f in schema if not f.nullable}

    assert schema.names[:19] == [*CONTRACT_COLUMNS, *NULLABLE_GATES]
    assert {name: required.get(name) for name in CONTRACT_COLUMNS} == CONTRACT_COLUMNS
    assert all(schema.field(name).type == pa.bool_() for name in NULLABLE_GATES)
    assert [f.name for f in schema if f.nullable] == [
        *NULLABLE_GATES,
        "category",
        "difficulty",
        "prompt_tokens",
        "completion_tokens",
    ]


ROWS = st.lists(
    st.builds(
        row,
        task_id=st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
        trial=st.integers(0, 2**62),
        schema_valid=st.none() | st.booleans(),
        category=st.none() | st.just("Größe"),
        prompt_tokens=st.none() | st.integers(0, 2**53),
        failure_codes=st.lists(st.just("a.b"), max_size=2).map(tuple),
        failure_records=st.lists(
            st.just(FailureRecord("episode", "c", "infrastructure", "episode")),
            max_size=2,
        ).map(tuple),
    ),
    max_size=6,
)


@pytest.mark.slow
@given(ROWS)
def test_rows_read_back_as_they_were_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("table") / "t.parquet"
    write(path, rows)

    assert list(read_task_rows(path)) == rows


def test_the_table_is_zstd_in_groups_of_fixed_size(path):
    write(path, (row(f"t{n}") for n in range(ROW_GROUP_SIZE + 3)))
    data = pq.read_metadata(path)
    groups = [data.row_group(n) for n in range(data.num_row_groups)]

    assert [group.num_rows for group in groups] == [ROW_GROUP_SIZE, 3]
    assert {g.column(c).compression for g in groups for c in range(g.num_columns)} == {
        "ZSTD"
    }
    assert sum(1 for _ in read_task_rows(path)) == ROW_GROUP_SIZE + 3


def test_groups_go_to_disk_while_rows_still_come(path):
    with TaskTableWriter(path) as table:
        for number in range(ROW_GROUP_SIZE):
            table.append(row(f"t{number}"))
        partial = path.with_name(".eval_task_results.parquet.tmp")

        assert partial.stat().st_size > 1000
        assert not path.exists()


def test_equal_rows_give_equal_bytes(path, tmp_path):
    rows = [row(f"t{n}") for n in range(5)]
    write(path, rows)
    write(tmp_path / "other.parquet", rows)

    assert hash_file(path) == hash_file(tmp_path / "other.parquet")


def test_an_empty_table_is_a_table(path):
    write(path, [])

    assert list(read_task_rows(path)) == []


def test_equal_rows_again_leave_the_file_alone(path):
    rows = [row(f"t{n}") for n in range(5)]
    write(path, rows)
    foreign = pa.Table.from_pylist(
        [one.semantic_payload() for one in rows], schema=table_schema()
    )
    pq.write_table(foreign, path, compression="snappy", row_group_size=2)
    before = hash_file(path)
    write(path, rows)

    assert hash_file(path) == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "rows",
    [
        [row("t0"), row("t1", task_success=True)],
        [row("t1"), row("t0")],
        [row("t0")],
        [row("t0"), row("t1"), row("t2")],
        [row("t0"), row("t1", schema_valid=False)],
    ],
    ids=["changed", "reordered", "fewer", "more", "null is not false"],
)
def test_other_rows_are_a_conflict(path, rows):
    write(path, [row("t0"), row("t1")])
    before = hash_file(path)
    with pytest.raises(ArtifactError, match="eval_cli_artifact_conflict"):
        write(path, rows)

    assert hash_file(path) == before
    assert list(path.parent.iterdir()) == [path]


def test_an_error_among_the_rows_leaves_no_table(path):
    def rows():
        yield row()
        raise KeyError("scoring")

    with pytest.raises(KeyError):
        write(path, rows())

    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b"no parquet"),
        lambda path: path.write_bytes(b""),
        lambda path: pq.write_table(pa.table({"task_id": ["t0"]}), path),
    ],
    ids=["text", "empty", "other columns"],
)
def test_a_file_of_another_shape_is_refused(path, make):
    make(path)
    with pytest.raises(ArtifactError, match="eval_artifact_invalid"):
        list(read_task_rows(path))


def test_duckdb_reads_the_table_as_a_view(path):
    write(path, [row("t0"), row("t1", task_success=True)])
    with connect_task_table(path) as connection:
        found = connection.sql(
            "select task_id, failure_records[1].code from tasks where task_success"
        ).fetchall()

    assert found == [("t1", "text_turn.mismatch")]
