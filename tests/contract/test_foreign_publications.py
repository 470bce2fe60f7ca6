"""Publications that another generator wrote for the same contract verify and run.

Theirs have the contract's 31 columns and no more, wider Arrow types, the unnamed
first fingerprint, and fields in the manifest that nothing here reads.
"""

import pytest

from harness.benchmark.pack import load_pack
from harness.benchmark.pack_tree import FINGERPRINT_V1
from harness.benchmark.source import verify_source
from harness.benchmark.tables import write_rows
from harness.errors import SourceError

TICKETS = ("look-1", "pair-1", "hidden-1", "lend-1", "chain-1", "ring-1", "ticketed-1")
V2 = "bfcl-pack-fingerprint-v2"
EXTRAS = {
    "schema_version": "1.5",
    "run_id": "desk_expt-20260105T120000Z-5f3c-7d1e",
    "judge_advisory": {"mean": 4.5},
    "exports": {"bfcl_json": {"content_hash": "sha256:" + "1" * 64}},
}


def write_as_upstream(file, rows):
    """Write a table without our own column and with 64-bit text offsets."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_rows(file, rows)
    table = pq.read_table(file).drop_columns(["slot_bindings"])
    wide = [
        pa.field(field.name, pa.large_string())
        if field.type == pa.string()
        else field.with_nullable(True)
        for field in table.schema
    ]
    pq.write_table(table.cast(pa.schema(wide)), file, compression="snappy")


def made_foreign(publication, *, algorithm=None, content_hash=None):
    """Rewrite a publication as upstream's generator would have written it."""
    publication.edit_rows(lambda row: row, write_as_upstream)
    tree = load_pack(publication.pack).tree

    def edit(manifest):
        for name in ("language", "seeds", "stage_counts", "trace_drop_rejections"):
            del manifest[name]
        manifest.update(EXTRAS)
        manifest["artifacts"]["trace_stage"] = {"content_hash": "sha256:" + "2" * 64}
        pack = manifest["pack"]
        del pack["docs_files"], pack["fingerprint_algorithm"]
        pack["files"] = tree.files
        pack["content_hash"] = content_hash or tree.fingerprint(FINGERPRINT_V1).value
        if algorithm is not None:
            pack["fingerprint_algorithm"] = algorithm

    publication.edit_manifest(edit)


@pytest.mark.slow
def test_foreign_publication_runs_and_gold_succeeds_on_it(desk_of):
    desk = desk_of(*TICKETS)
    made_foreign(desk.publication)

    ran = desk.play({})

    assert ran.candidate["successful_tasks"] == len(TICKETS)
    assert ran.finished.report["source_run_id"] == EXTRAS["run_id"]
    report = verify_source(ran.config).report
    assert report["oracle"]["fingerprint_algorithm"] == FINGERPRINT_V1


@pytest.mark.slow
def test_foreign_rows_judge_as_our_own_rows_do(desk_of):
    desk = desk_of(*TICKETS)
    own = desk.play({}, "own")
    made_foreign(desk.publication)
    foreign = desk.play({}, "foreign")

    for ticket in TICKETS:
        verdicts = [
            [(gate.gate, gate.outcome, gate.reason_code) for gate in score.gates]
            for score in (own.score(ticket), foreign.score(ticket))
        ]

        assert verdicts[0] == verdicts[1], ticket


@pytest.mark.parametrize(
    ("algorithm", "content_hash", "settled_by"),
    [
        (FINGERPRINT_V1, None, FINGERPRINT_V1),
        (None, "sha256:" + "3" * 64, "file-map"),
        (V2, "sha256:" + "3" * 64, "file-map"),
    ],
)
def test_fingerprint_is_recomputed_where_its_bytes_are_known(
    desk_of, algorithm, content_hash, settled_by
):
    desk = desk_of("look-1")
    made_foreign(desk.publication, algorithm=algorithm, content_hash=content_hash)

    source = verify_source(desk.config("http://127.0.0.1:9/v1"))

    assert source.report["oracle"]["fingerprint_algorithm"] == settled_by


@pytest.mark.parametrize("algorithm", [FINGERPRINT_V1, V2])
def test_changed_pack_of_a_foreign_publication_is_drift(desk_of, algorithm):
    desk = desk_of("look-1")
    made_foreign(desk.publication, algorithm=algorithm)
    with (desk.publication.pack / "moods.py").open("a") as stream:
        stream.write("\n")

    with pytest.raises(SourceError) as caught:
        verify_source(desk.config("http://127.0.0.1:9/v1"))

    assert caught.value.code == "eval_source_oracle_pack_drift"
    assert "tree/moods.py (changed" in str(caught.value)
