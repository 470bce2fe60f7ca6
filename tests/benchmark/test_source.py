import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.benchmark.source import (
    verify_source,
    write_source_failure,
    write_source_report,
)
from harness.canonical import content_hash
from harness.errors import SourceError
from tests.benchmark.publications import MODEL, probe_backend

MANIFEST = "eval_source_manifest_invalid"
PUBLICATION = "eval_source_publication_invalid"
INDEX = "eval_source_task_index_invalid"
DRIFT = "eval_source_oracle_pack_drift"
RESOURCE = "eval_source_oracle_resource_mismatch"
EXPOSURE = "eval_source_model_exposure_invalid"
ALL_CHECKS = (
    "commit_marker",
    "manifest_fields",
    "manifest_bytes",
    "manifest_schema_version",
    "source_run_id",
    "lineage",
    "oracle_kind",
    "publication_contract",
    "raw_bytes",
    "published_bytes",
    "held_out_verdict",
    "certification_report",
    "publication_semantics",
    "row_decoding",
    "task_index",
    "oracle_pack",
    "oracle_resource",
    "oracle_interface",
    "translation_lineage",
    "model_exposure",
)


@pytest.mark.slow
def test_sound_source_passes_every_check(publication):
    source = publication.verified(probe=probe_backend)

    assert source.checks == ALL_CHECKS


def test_check_that_was_not_made_is_not_listed(publication):
    checks = publication.verified().checks

    assert checks == tuple(name for name in ALL_CHECKS if name != "oracle_interface")


def test_trace_source_needs_no_pack(publication):
    shutil.rmtree(publication.pack)

    source = publication.verified(executable=False)

    assert (source.pack, source.oracle_verification_identity) == (None, None)
    assert source.claim_scope == "trace_only"


def test_source_indexes_the_published_tasks_in_order(publication):
    source = publication.verified()

    assert list(source.task_ids) == publication.task_ids()
    assert source.task_ids_hash == content_hash(publication.task_ids())


def test_rows_are_served_in_order_and_one_by_one(publication):
    source = publication.verified()

    assert tuple(row["task_id"] for row in source.rows()) == source.task_ids
    assert source.row(source.task_ids[7])["task_id"] == source.task_ids[7]
    with pytest.raises(KeyError):
        source.row("none")


def _set(path, value):
    def edit(manifest):
        *parents, last = path.split(".")
        for part in parents:
            manifest = manifest[part]
        manifest[last] = value

    return edit


REQUIRED = (
    "artifacts created_at generation_config_hash gold_eligible held_out lineage_policy "
    "models oracle oracle_clock pack publication resolved_config_hash run_id "
    "schema_version tier"
)


@pytest.mark.parametrize("field", REQUIRED.split())
def test_manifest_without_a_mandatory_field_is_refused(publication, field):
    publication.edit_manifest(lambda manifest: manifest.pop(field))
    error = publication.refusal(executable=False)

    assert (error.code, error.violations[0].where) == (
        MANIFEST,
        f"run_manifest.json: {field}",
    )


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("schema_version", "2.0", MANIFEST),
        ("schema_version", 1, MANIFEST),
        ("run_id", " ", MANIFEST),
        ("generation_config_hash", "", MANIFEST),
        ("resolved_config_hash", "", MANIFEST),
        ("lineage_policy", "", MANIFEST),
        ("oracle_clock", "noon", MANIFEST),
        ("created_at", "yesterday", MANIFEST),
        ("oracle.kind", "container", MANIFEST),
        ("pack.pack_id", "", MANIFEST),
        ("pack.content_hash", "f00", MANIFEST),
        ("pack.files", [], MANIFEST),
        ("publication.schema_version", "2.0", PUBLICATION),
        ("publication.verified", False, PUBLICATION),
        ("publication.verified", 1, PUBLICATION),
        ("publication.restated_fields", ["tier"], PUBLICATION),
        ("publication.raw", None, PUBLICATION),
        ("publication.raw.file", "../benchmark_raw.parquet", PUBLICATION),
        ("publication.raw.rows", True, PUBLICATION),
        ("publication.published.rows", 49, PUBLICATION),
        ("publication.raw.rows", 51, PUBLICATION),
        ("publication.published.ordering", "alphabetical", PUBLICATION),
        ("publication.published.ordering", "selection_rank", PUBLICATION),
        ("publication.published.surface_gate", "none", PUBLICATION),
        ("publication.published.held_out_evaluated", True, PUBLICATION),
        ("held_out.evaluated", True, PUBLICATION),
        ("held_out.evaluated", None, PUBLICATION),
        ("artifacts.benchmark_parquet.content_hash", None, PUBLICATION),
        ("publication.published.content_hash", "sha256:0", PUBLICATION),
    ],
)
def test_manifest_statement_that_does_not_hold_is_refused(
    publication, path, value, code
):
    publication.edit_manifest(_set(path, value))

    assert publication.refusal(executable=False).code == code


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"a":1,"a":2}', b"\xff", b""])
def test_file_that_is_no_manifest_is_called_that(publication, data):
    publication.manifest_path.write_bytes(data)

    assert publication.refusal(executable=False).code == MANIFEST


def test_publication_is_named_by_its_commit_marker(publication):
    other = publication.benchmark / "manifest.json"
    publication.manifest_path.rename(other)
    config = publication.configured
    publication.manifest_path.write_bytes(other.read_bytes())
    config(executable=False)
    text = publication.config.read_text("utf-8")
    publication.config.write_text(
        text.replace("benchmark/run_manifest.json", "benchmark/manifest.json"), "utf-8"
    )

    assert publication.refusal(config=publication.reload()).code == MANIFEST


def test_manifest_changed_after_loading_is_drift(publication):
    config = publication.configured()
    publication.edit_manifest(_set("tier", "other"))

    assert publication.refusal(config=config).code == "eval_source_manifest_drift"


def test_structure_is_reported_before_drift(publication):
    config = publication.configured()
    publication.edit_manifest(lambda manifest: manifest.pop("tier"))

    assert publication.refusal(config=config).code == MANIFEST


@pytest.mark.parametrize("name", ["benchmark.parquet", "benchmark_raw.parquet"])
def test_one_changed_byte_of_a_table_is_refused(publication, name):
    data = bytearray((publication.benchmark / name).read_bytes())
    data[len(data) // 2] ^= 1
    (publication.benchmark / name).write_bytes(data)
    error = publication.refusal()

    assert error.code == "eval_source_benchmark_hash_mismatch"
    assert error.violations[0].where == name


@pytest.mark.parametrize(
    "path",
    [
        "artifacts.benchmark_raw_parquet.content_hash",
        "publication.raw.content_hash",
        "artifacts.benchmark_parquet.content_hash",
        "publication.published.content_hash",
    ],
)
def test_every_declaration_of_a_table_counts(publication, path):
    publication.edit_manifest(_set(path, "sha256:" + "0" * 64))

    assert publication.refusal().code == "eval_source_benchmark_hash_mismatch"


@pytest.mark.parametrize("name", ["benchmark.parquet", "benchmark_raw.parquet"])
def test_missing_table_is_refused(publication, name):
    (publication.benchmark / name).unlink()

    assert publication.refusal().code == "eval_source_invalid"


@pytest.mark.parametrize("name", ["benchmark.parquet", "benchmark_raw.parquet"])
def test_linked_table_is_refused(publication, name):
    table = publication.benchmark / name
    table.rename(publication.root / name)
    table.symlink_to(publication.root / name)

    assert publication.refusal().code == PUBLICATION


def test_linked_manifest_is_refused(publication):
    target = publication.root / "elsewhere.json"
    publication.manifest_path.rename(target)
    publication.manifest_path.symlink_to(target)

    assert publication.refusal().code == MANIFEST


def test_file_that_is_no_table_is_refused(publication):
    (publication.benchmark / "benchmark.parquet").write_bytes(b"no parquet")
    import harness.canonical as canonical

    digest = canonical.hash_bytes(b"no parquet")

    def declare(manifest):
        manifest["publication"]["published"]["content_hash"] = digest
        manifest["artifacts"]["benchmark_parquet"]["content_hash"] = digest

    publication.edit_manifest(declare)

    assert publication.refusal().code == "eval_source_benchmark_schema_mismatch"


def _changed_row(rows):
    rows[3]["intent"] = "another"


def _held_out(rows):
    rows[0]["held_out_hit"] = False


def _unknown_id(rows):
    rows[0]["task_id"] = "stranger"


def _swapped(rows):
    rows[0], rows[1] = rows[1], rows[0]


def _kept(rows):
    return rows


@pytest.mark.parametrize(
    ("raw", "published"),
    [
        (_kept, _changed_row),
        (_kept, _unknown_id),
        (_kept, _swapped),
        (_held_out, _held_out),
        (_kept, lambda rows: [*rows, {**rows[-1], "task_id": "more"}]),
    ],
)
def test_published_rows_follow_from_the_raw_rows(publication, raw, published):
    publication.edit_rows(published, raw=raw)

    assert publication.refusal().code == PUBLICATION


def test_repeated_raw_id_is_refused(publication):
    publication.edit_rows(_kept, raw=lambda rows: [*rows, rows[0]])

    assert publication.refusal().code == PUBLICATION


def test_fewer_published_rows_in_raw_order_are_a_publication(publication):
    publication.edit_rows(lambda rows: rows[10:20], raw=_kept)

    assert len(publication.verified().task_ids) == 10


def test_selection_may_have_an_order_of_its_own(publication):
    publication.edit_rows(lambda rows: rows[::-1][:5], raw=_kept)

    def ranked(manifest):
        manifest["publication"]["published"]["ordering"] = "selection_rank"
        manifest["publication"]["published"]["dedup_balancing_applied"] = True

    publication.edit_manifest(ranked)

    assert len(publication.verified().task_ids) == 5


def _evaluated(manifest):
    manifest["held_out"]["evaluated"] = True
    manifest["publication"]["published"]["held_out_evaluated"] = True


@pytest.mark.parametrize(("hits", "refused"), [({}, False), ({2}, True)])
def test_held_out_rows_are_never_published(publication, hits, refused):
    def mark(rows):
        for index, row in enumerate(rows):
            row["held_out_hit"] = index in hits

    publication.edit_rows(mark)
    publication.edit_manifest(_evaluated)

    if refused:
        assert publication.refusal().code == PUBLICATION
    else:
        assert publication.verified().checks


def test_evaluated_held_out_policy_marks_every_raw_row(publication):
    publication.edit_manifest(_evaluated)

    assert publication.refusal().code == PUBLICATION


def _row(**changes):
    def edit(rows):
        for name, value in changes.items():
            rows[4][name] = value

    return edit


def _drop_tool_message(rows):
    row = next(row for row in rows if row["num_tool_calls"])
    row["messages"] = [m for m in row["messages"] if m["role"] != "tool"]


def _no_messages(rows):
    rows[4]["messages"] = []


def _bad_arguments(rows):
    row = next(row for row in rows if row["num_tool_calls"])
    call = next(m for m in row["messages"] if m.get("tool_calls"))["tool_calls"][0]
    call["function"]["arguments"] = "{"


@pytest.mark.parametrize(
    "edit",
    [
        _row(task_id="a/b"),
        _row(task_id="a b"),
        _row(task_id=""),
        _row(task_id=".."),
        _row(task_id="x" * 201),
        _row(turn_policy="chat"),
        _row(call_order="random"),
        _row(call_order_prefix=1),
        _row(num_tool_calls=9),
        _row(validated_by=["hope"]),
        _row(pack_id="bank"),
        _row(metadata={"language": "en"}),
        _row(intent=None),
        _row(tools={}),
        _drop_tool_message,
        _no_messages,
        _bad_arguments,
    ],
)
def test_row_that_cannot_be_asked_is_refused_never_skipped(publication, edit):
    publication.edit_rows(edit)
    error = publication.refusal()

    assert error.code == INDEX
    assert "benchmark.parquet" in error.violations[0].where


def test_repeated_published_id_is_refused(publication):
    publication.edit_rows(lambda rows: [rows[0], *rows], raw=_kept)

    assert publication.refusal().code == INDEX


def test_publication_replay_is_reported_before_a_row_that_cannot_be_asked(publication):
    def both(rows):
        rows[0]["turn_policy"] = "chat"

    publication.edit_rows(lambda rows: [*rows[1:], rows[0]], raw=both)

    assert publication.refusal().code == PUBLICATION


def test_one_byte_of_the_pack_is_drift_naming_the_file(publication):
    with (publication.pack / "backend.py").open("a") as stream:
        stream.write("\n")
    error = publication.refusal()

    assert error.code == DRIFT
    assert "tree/backend.py (changed)" in error.violations[0].where


def test_added_file_of_the_pack_is_drift(publication):
    (publication.pack / "notes.txt").write_text("x")
    error = publication.refusal()

    assert error.code == DRIFT
    assert "tree/notes.txt (added, no declared input)" in error.violations[0].where


def test_removed_file_of_the_pack_is_drift(publication):
    publication.edit_manifest(
        lambda m: m["pack"]["files"].update({"tree/gone.py": "sha256:" + "0" * 64})
    )

    assert "tree/gone.py (removed)" in publication.refusal().violations[0].where


def test_documents_of_the_pack_may_change(publication):
    before = publication.verified()
    (publication.pack / "docs" / "more.md").write_text("more")

    before.assert_unchanged()
    before.assert_stat_unchanged()
    assert publication.verified().verification_identity == before.verification_identity


def test_pack_that_does_not_load_is_drift(publication):
    (publication.pack / "tools.json").write_text("[")

    assert publication.refusal().code == DRIFT


def test_other_fingerprint_is_drift(publication):
    publication.edit_manifest(_set("pack.content_hash", "sha256:" + "0" * 64))

    assert publication.refusal().code == DRIFT


def test_foreign_fingerprint_is_settled_by_the_file_map(publication):
    def foreign(manifest):
        pack = manifest["pack"]
        pack["fingerprint_algorithm"] = "bfcl-pack-fingerprint-v2"
        pack["content_hash"] = "sha256:" + "0" * 64
        pack["files"].update(pack.pop("docs_files"))

    publication.edit_manifest(foreign)

    assert publication.verified().oracle.algorithm == "file-map"


def test_unnamed_fingerprint_is_the_first_algorithm(publication):
    from harness.benchmark.pack import load_pack
    from harness.benchmark.pack_tree import FINGERPRINT_V1

    tree = load_pack(publication.pack).tree

    def unnamed(manifest):
        pack = manifest["pack"]
        del pack["fingerprint_algorithm"]
        pack["content_hash"] = tree.fingerprint(FINGERPRINT_V1).value
        pack["files"].update(pack.pop("docs_files"))

    publication.edit_manifest(unnamed)

    assert publication.verified().oracle.algorithm == FINGERPRINT_V1


def test_resource_is_the_packs_own(publication):
    publication.configured()
    other = publication.root / "other.py"
    other.write_text("")
    text = publication.config.read_text("utf-8").replace("pack/backend.py", "other.py")
    publication.config.write_text(text, "utf-8")

    assert publication.refusal(config=publication.reload()).code == RESOURCE


@pytest.mark.slow
def test_backend_that_lists_other_tools_is_refused(publication):
    backend = publication.pack / "backend.py"
    backend.write_text(
        backend.read_text("utf-8") + "\ndef list_tools():\n    return []\n", "utf-8"
    )
    _certify_as_is(publication)
    with pytest.raises(SourceError) as caught:
        publication.verified(probe=probe_backend)

    assert caught.value.code == RESOURCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["call_tool", "get_state", "list_tools", "reset"])
def test_backend_without_one_of_its_functions_is_refused(publication, name):
    backend = publication.pack / "backend.py"
    backend.write_text(
        backend.read_text("utf-8") + f"\n{name} = None\n",
        "utf-8",
    )
    _certify_as_is(publication)
    with pytest.raises(SourceError) as caught:
        publication.verified(probe=probe_backend)

    assert caught.value.code == RESOURCE


def _certify_as_is(publication):
    """State the changed pack in the manifest, as if it had been published."""
    from harness.benchmark.pack import load_pack

    pack = load_pack(publication.pack)
    docs = pack.tree.docs_files()

    def state(manifest):
        manifest["pack"]["content_hash"] = pack.fingerprint.value
        manifest["pack"]["files"] = {
            name: value for name, value in pack.files.items() if name not in docs
        }

    publication.edit_manifest(state)


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m["models"].pop("profile"),
        lambda m: m["models"].update(judge=m["models"]["profile"]),
        _set("models.profile", None),
        _set("models.profile.enabled", "false"),
        _set("models.profile.model", "writer"),
        _set("models.paraphrase", {**MODEL, "model": None}),
        _set("profile_influenced_surface", True),
        _set("profile_influenced_surface", "no"),
    ],
)
def test_model_inventory_that_contradicts_itself_is_refused(publication, edit):
    publication.edit_manifest(edit)

    assert publication.refusal().code == EXPOSURE


def _paraphrased(rows):
    for row in rows[:3]:
        row["paraphrase_model"] = "writer"
        row["paraphrase_model_canonical"] = MODEL["canonical_id"]


def _shaped(rows):
    for row in rows[:2]:
        row["metadata"]["profile_hash"] = "sha256:" + "1" * 64


@pytest.mark.parametrize("edit", [_paraphrased, _shaped])
def test_row_that_no_role_claims_is_refused(publication, edit):
    publication.edit_rows(edit)
    publication.edit_manifest(_set("profile_influenced_surface", None))

    assert publication.refusal().code == EXPOSURE


def test_row_of_another_paraphraser_is_refused(publication):
    publication.edit_rows(_paraphrased)
    publication.edit_manifest(
        _set("models.paraphrase", {**MODEL, "canonical_id": "nim:other@x"})
    )

    assert publication.refusal().code == EXPOSURE


def test_profile_that_the_manifest_denies_is_refused(publication):
    publication.edit_rows(_shaped)
    publication.edit_manifest(_set("models.profile", MODEL))

    assert publication.refusal().code == EXPOSURE


@pytest.mark.parametrize(
    ("role", "edit", "scope", "count"),
    [
        ("paraphrase", _paraphrased, "paraphrased_rows", 3),
        ("profile", _shaped, "profile_shaped_rows", 2),
        ("surface_judge", _kept, "all_published_rows", 50),
    ],
)
def test_exposure_covers_the_rows_that_its_role_touched(
    publication, role, edit, scope, count
):
    publication.edit_rows(edit)
    publication.edit_manifest(_set(f"models.{role}", MODEL))
    publication.edit_manifest(_set("profile_influenced_surface", None))
    (exposure,) = publication.verified().exposures

    assert (exposure.role, exposure.scope, len(exposure.task_ids)) == (
        role,
        scope,
        count,
    )


def test_role_that_touched_no_row_is_no_exposure(publication):
    publication.edit_manifest(_set("models.paraphrase", MODEL))

    assert publication.verified().exposures == ()


def test_identity_is_the_same_in_another_folder(publication, tmp_path, library):
    from tests.benchmark.publications import Publication

    other = Publication(tmp_path / "deep" / "er", library)

    assert (
        other.verified().verification_identity
        == publication.verified().verification_identity
    )


def test_identity_covers_config_and_content(publication):
    first = publication.verified()
    other_config = publication.verified(changes={("limits", "max_turns"): 3})
    publication.edit_rows(lambda rows: rows[:20], raw=_kept)
    other_rows = publication.verified()

    identities = {
        source.verification_identity for source in (first, other_config, other_rows)
    }
    assert len(identities) == 3


def test_oracle_identity_does_not_depend_on_the_config(publication):
    first = publication.verified()
    other = publication.verified(changes={("limits", "max_turns"): 3})

    assert first.oracle_verification_identity == other.oracle_verification_identity


def test_lineage_that_is_not_meant_for_publication_is_a_reason(publication):
    publication.edit_manifest(_set("lineage_policy", "smoke_no_publication"))

    assert publication.verified().non_publication_reasons == ("source.lineage_policy",)


SOURCE_FILES = (
    "benchmark/run_manifest.json",
    "benchmark/benchmark.parquet",
    "benchmark/benchmark_raw.parquet",
    "pack/backend.py",
    "pack/assertions.py",
    "pack/fixtures.json",
)


@pytest.mark.parametrize("name", SOURCE_FILES)
def test_changed_file_is_noticed_by_both_checks(publication, name):
    source = publication.verified()
    source.assert_unchanged()
    source.assert_stat_unchanged()
    with (publication.root / name).open("ab") as stream:
        stream.write(b"\n")

    for check in (source.assert_unchanged, source.assert_stat_unchanged):
        with pytest.raises(SourceError) as caught:
            check()
        assert caught.value.code == "eval_source_changed_during_eval"


def test_replaced_file_of_the_same_size_and_time_is_noticed(publication):
    source = publication.verified()
    path = publication.pack / "backend.py"
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(SourceError):
        source.assert_stat_unchanged()


@pytest.mark.parametrize("change", ["added", "removed", "linked"])
def test_other_set_of_pack_files_is_noticed(publication, change):
    source = publication.verified()
    path = publication.pack / "json.py"
    if change == "added":
        path.write_text("")
    elif change == "linked":
        path.symlink_to(publication.manifest_path)
    else:
        (publication.pack / "fixtures.json").unlink()

    for check in (source.assert_unchanged, source.assert_stat_unchanged):
        with pytest.raises(SourceError):
            check()


def test_report_is_written_whole_and_removes_a_failure(publication):
    source = publication.verified()
    folder = publication.root / "run"
    folder.mkdir()
    (folder / "source_verification_failure.json").write_text("{}")
    write_source_report(folder, source)

    assert [path.name for path in folder.iterdir()] == [
        "source_verification_report.json"
    ]
    data = (folder / "source_verification_report.json").read_bytes()
    report = json.loads(data)
    text = json.dumps(report, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert data == text.encode()
    assert report["checks"] == list(source.checks)
    assert str(publication.root) not in text


def test_failure_removes_an_older_report(publication):
    config = publication.configured()
    folder = publication.root / "run"
    write_source_report(folder, verify_source(config))
    (publication.benchmark / "benchmark.parquet").write_bytes(b"")
    error = publication.refusal(config=config)
    write_source_failure(folder, config, error)

    (path,) = folder.iterdir()
    failure = json.loads(path.read_bytes())
    assert path.name == "source_verification_failure.json"
    assert failure["status"] == "refused"
    assert failure["error"]["code"] == "eval_source_benchmark_hash_mismatch"
    assert str(publication.root) not in path.read_text("utf-8")


def test_verification_imports_no_client_and_no_oracle():
    program = (
        "import sys, harness.benchmark.source, harness.benchmark.contamination;"
        "print([m for m in sys.modules if m.startswith(('harness.oracle', "
        "'harness.candidates', 'httpx'))])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"


def test_edited_certification_report_is_refused(publication):
    (publication.benchmark / "oracle_validation_report.json").write_text("{}")

    with pytest.raises(SourceError) as caught:
        publication.verified()

    assert caught.value.code == "eval_source_publication_invalid"
