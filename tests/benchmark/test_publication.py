"""Publishing: same pack, same bytes; nothing half written; no contradictions."""

import copy
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.benchmark.bundled import bundled_pack
from harness.benchmark.commit_marker import (
    MANIFEST_FILE,
    PUBLISHED_FILE,
    RAW_FILE,
    REPORT_FILE,
)
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import read_rows, row_hash
from harness.benchmark.rows import COLUMNS
from harness.benchmark.tables import arrow_schema, write_rows
from harness.canonical import hash_file
from harness.conversation.script import script_from_row
from harness.errors import PackError, SourceError, UsageError
from tests.benchmark.shop import (
    ASSERTIONS,
    DONE,
    GET,
    ITEM,
    loaded,
    published,
    purchase,
    template,
    write_pack,
)

ZERO = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library") / "benchmark"
    return published(load_pack(bundled_pack("library")), folder)


@pytest.fixture(scope="module")
def rows(library):
    return list(read_rows(library.output / PUBLISHED_FILE))


def _manifest(run):
    return json.loads((run.output / MANIFEST_FILE).read_text())


@pytest.mark.slow
def test_library_is_gold_and_of_the_promised_size(library, rows):
    assert (library.gold_eligible, library.tier, library.exit_status) == (
        True,
        "gold",
        0,
    )
    assert 20 <= len(rows) == library.rows <= 60


@pytest.mark.slow
def test_two_publications_have_the_same_bytes(library, tmp_path):
    again = published(load_pack(bundled_pack("library")), tmp_path / "elsewhere" / "b")

    for name in (RAW_FILE, PUBLISHED_FILE, REPORT_FILE, MANIFEST_FILE):
        assert hash_file(again.output / name) == hash_file(library.output / name)


def test_every_row_reads_as_a_script(rows):
    scripts = [script_from_row(row, ZERO) for row in rows]

    assert [len(s.gold_calls) for s in scripts] == [r["num_tool_calls"] for r in rows]


def test_all_nine_policies_are_shown(rows):
    assert len({row["turn_policy"] for row in rows}) == 9


def test_table_has_exactly_the_contract_columns(library):
    schema = pq.read_schema(library.output / PUBLISHED_FILE)

    assert schema.names == [*COLUMNS, "slot_bindings"]
    assert schema.equals(arrow_schema())
    assert len(COLUMNS) == 31
    assert schema.field("seed").type == pa.uint64()


def test_manifest_declares_the_bytes_it_stands_beside(library):
    manifest = _manifest(library)

    for key, name in (
        ("benchmark_raw_parquet", RAW_FILE),
        ("benchmark_parquet", PUBLISHED_FILE),
        ("oracle_validation_report", REPORT_FILE),
    ):
        assert manifest["artifacts"][key]["content_hash"] == hash_file(
            library.output / name
        )


def test_manifest_names_no_place_and_no_time(library):
    text = (library.output / MANIFEST_FILE).read_text()

    assert str(library.output.parent) not in text
    assert _manifest(library)["created_at"] == _manifest(library)["oracle_clock"]


def test_rows_of_another_writer_hash_the_same(library, rows, tmp_path):
    table = pq.read_table(library.output / PUBLISHED_FILE)
    pq.write_table(table, tmp_path / "t.parquet", compression="none", row_group_size=7)

    again = list(read_rows(tmp_path / "t.parquet"))

    assert list(map(row_hash, again)) == list(map(row_hash, rows))


def test_rows_survive_writing_and_reading(rows, tmp_path):
    write_rows(tmp_path / "t.parquet", rows)

    assert list(read_rows(tmp_path / "t.parquet")) == rows


def test_foreign_table_without_bindings_is_read(library, rows, tmp_path):
    table = pq.read_table(library.output / PUBLISHED_FILE).drop(["slot_bindings"])
    pq.write_table(table, tmp_path / "t.parquet")

    (first, *_) = read_rows(tmp_path / "t.parquet")

    assert first == {**rows[0], "slot_bindings": None}


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop(["seed"]),
        lambda table: table.append_column("extra", [["x"] * len(table)]),
        lambda table: table.select([*COLUMNS[1:], COLUMNS[0], "slot_bindings"]),
        lambda table: table.set_column(
            2, "variant_index", [pa.array(range(len(table)), pa.int64())]
        ),
    ],
)
def test_table_with_other_columns_is_refused(library, tmp_path, change):
    table = change(pq.read_table(library.output / PUBLISHED_FILE))
    pq.write_table(table, tmp_path / "t.parquet")

    with pytest.raises(SourceError, match="columns") as caught:
        list(read_rows(tmp_path / "t.parquet"))

    assert caught.value.code == "eval_source_benchmark_schema_mismatch"


def test_file_that_is_no_table_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_text("no table")

    with pytest.raises(SourceError, match="cannot be read"):
        list(read_rows(tmp_path / "t.parquet"))


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', None])
def test_row_that_does_not_decode_is_refused(library, tmp_path, text):
    table = pq.read_table(library.output / PUBLISHED_FILE)
    index = table.schema.names.index("tools")
    broken = pa.array([text] * len(table), pa.string())
    pq.write_table(table.set_column(index, "tools", broken), tmp_path / "t.parquet")

    with pytest.raises(SourceError, match="cannot be decoded"):
        list(read_rows(tmp_path / "t.parquet"))


def test_existing_output_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "out").mkdir()

    with pytest.raises(UsageError) as caught:
        published(loaded(tmp_path / "pack"), tmp_path / "out")

    assert caught.value.code == "eval_output_exists"


@pytest.mark.slow
def test_two_tasks_that_look_the_same_and_differ_are_refused(tmp_path):
    slots = {"item_id": {**ITEM, "source": "literal:'I-1'"}}
    pack = loaded(
        tmp_path / "pack",
        template(slots=slots),
        template(
            template_id="other",
            slots=slots,
            assistant_milestones=[{**GET, "args": {"unit": "box"}}, DONE],
        ),
    )

    with pytest.raises(PackError, match="expect different steps") as caught:
        published(pack, tmp_path / "out")

    assert "look-" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_refused_publication_leaves_nothing_behind(tmp_path):
    pack = loaded(tmp_path / "pack")
    (pack.root / "late.txt").write_text("changed after loading")

    with pytest.raises(PackError, match="changed while"):
        published(pack, tmp_path / "out")

    assert [path.name for path in tmp_path.iterdir()] == ["pack"]


def _not_gold(run):
    return run.gold_eligible, run.tier, run.exit_status


@pytest.mark.slow
def test_failing_assertion_keeps_the_row_out_and_the_run_from_gold(tmp_path):
    source = ASSERTIONS + (
        "\n\ndef assert_lamp(*, state, trace, task, ctx):\n"
        "    assert task['slots']['item_id'] == 'I-1'\n"
    )
    made = template(success_assertions=["assert_lamp"])
    pack = loaded(tmp_path / "pack", made, purchase(), assertions=source)

    run = published(pack, tmp_path / "out")

    assert _not_gold(run) == (False, "silver", 2)
    assert (run.rows, run.raw_rows) == (4, 6)
    manifest = _manifest(run)
    assert manifest["gold_ineligibility_reasons"] == ["gold_assertions.failed"]
    assert {row["gold_eligible"] for row in read_rows(run.output / RAW_FILE)} == {False}


@pytest.mark.slow
def test_gold_with_invalid_arguments_is_dropped_and_counted(tmp_path):
    bad = template(
        template_id="bad",
        assistant_milestones=[{**GET, "args": {"unit": "ton"}}, DONE],
    )
    pack = loaded(tmp_path / "pack", purchase(), bad)

    run = published(pack, tmp_path / "out")

    assert _not_gold(run) == (False, "silver", 2)
    assert _manifest(run)["trace_drop_rejections"] == {"schema_invalid_gold": 3}
    assert {r["template_id"] for r in read_rows(run.output / RAW_FILE)} == {"buy"}


@pytest.mark.slow
def test_words_that_give_a_tool_away_are_dropped_and_counted(tmp_path):
    slots = {"item_id": {**ITEM, "source": "literal:['I-1', 'get_item']"}}
    pack = loaded(tmp_path / "pack", purchase(), template(slots=slots))

    run = published(pack, tmp_path / "out")

    assert _manifest(run)["surface_guard_rejections"] == {
        "user text names the tool 'get_item'": 1
    }
    assert run.rows == 4


@pytest.mark.slow
def test_pack_whose_backend_does_not_import_publishes_nothing(tmp_path):
    pack = loaded(tmp_path / "pack", backend="raise RuntimeError('broken shop')\n")

    with pytest.raises(PackError, match="no task of the pack survived"):
        published(pack, tmp_path / "out")


def test_row_hash_ignores_only_the_absence_of_bindings(rows):
    row = copy.deepcopy(rows[0])
    without = {name: row[name] for name in COLUMNS}

    assert row_hash(without) == row_hash({**row, "slot_bindings": None})
    assert row_hash(without) != row_hash(row)


@pytest.mark.slow
def test_pack_with_held_out_file_is_published_and_not_evaluated(tmp_path):
    write_pack(
        tmp_path / "pack",
        purchase(),
        template(),
        manifest={"held_out": "held_out.yaml"},
        files={"held_out.yaml": "version: '1'\nfixtures: {items: [I-1]}\n"},
    )

    run = published(load_pack(tmp_path / "pack"), tmp_path / "out")

    assert run.gold_eligible
    assert _manifest(run)["held_out"] == {"declared": True, "evaluated": False}
