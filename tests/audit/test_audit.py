"""An audit against real publications, gates and runs of theirs."""

import json
import shutil
from datetime import UTC, datetime

import pytest

from harness.audit.decision import audit_config
from harness.audit.runs import audit_run, audit_runs
from harness.audit.slim_report import read_slim
from harness.benchmark.contamination import (
    FAILURE_NAME,
    REPORT_NAME,
    authorize,
    write_plan_failure,
    write_plan_report,
)
from harness.benchmark.source import verify_source, write_source_report
from harness.canonical import content_hash
from harness.cli.main import main
from harness.errors import ArtifactError, ConfigError, ContaminationError, SourceError
from harness.evidence.artifacts import write_json_artifact
from harness.evidence.folder import RunFolder
from harness.evidence.plan_file import PlanFile
from harness.run.authorize import pass_gates, write_authorized
from harness.verification.findings import Findings
from harness.verification.planned import check_kinds, check_plan, check_source
from tests.benchmark.publications import MODEL, Publication, candidate, publish_library

PIN = {"revision": "a" * 40}
READ = 3


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return publish_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def publication(tmp_path, library):
    """A published library of which `nim:writer` read three rows."""
    made = Publication(tmp_path / "copy", library)

    def mark(table):
        for row in table[:READ]:
            row["paraphrase_model"] = MODEL["model"]
            row["paraphrase_model_canonical"] = MODEL["canonical_id"]

    made.edit_rows(mark)
    made.edit_manifest(lambda m: m["models"].update(paraphrase=MODEL))
    return made


def named_alike():
    """A candidate with the reader's name at another provider."""
    section = candidate("writer", **PIN)
    section["provider"] = section["model_identity"]["source"] = "elsewhere"
    return section


def configured(publication, *listed, **changes):
    paths = {tuple(key.split("__")): value for key, value in changes.items()}
    return publication.configured(
        executable=False, candidates=list(listed), changes=paths
    )


CASES = {
    "told apart": ([candidate("alpha", **PIN)], {}),
    "unresolved": ([candidate("alpha", **PIN), named_alike()], {}),
    "unresolved and requested": (
        [named_alike()],
        {"publication__requested": True},
    ),
    "match": ([candidate("writer", **PIN), candidate("alpha", **PIN)], {}),
    "match left out": (
        [candidate("writer", **PIN), candidate("alpha", **PIN)],
        {"contamination__on_violation": "exclude_row"},
    ),
    "match let through": (
        [candidate("writer", **PIN)],
        {"contamination__enforce": False},
    ),
}

REFUSED = ("match", "unresolved and requested")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_audit_decides_as_a_run_does(publication, case):
    listed, changes = CASES[case]
    config = configured(publication, *listed, **changes)
    source = verify_source(config)
    try:
        plan = authorize(config, source)
        refused = []
    except ContaminationError as error:
        plan, refused = None, [v.code for v in error.violations]

    audit = audit_config(config)

    assert [r["code"] for r in audit["refusals"]] == refused
    assert audit["source_task_ids_hash"] == source.task_ids_hash
    for found in audit["exposures"]:
        found.pop("first_task_ids")
    assert audit["exposures"] == [each.identity() for each in source.exposures]
    if plan is not None:
        assert audit["publication_allowed"] == plan.publication_allowed
        assert tuple(audit["non_publication_reasons"]) == plan.non_publication_reasons
        assert audit["common_task_count"] == len(plan.common)
        assert {c["alias"]: c["eligible_task_count"] for c in audit["candidates"]} == {
            c.alias: len(c.eligible_task_ids) for c in plan.candidates
        }


@pytest.fixture
def shaped(publication):
    """The same reader shaped three rows by a profile, one of them paraphrased too."""

    def mark(table):
        for row in table[READ - 1 : 2 * READ - 1]:
            row["metadata"] = {**row["metadata"], "profile_hash": "sha256:" + "0" * 64}

    publication.edit_rows(mark)
    publication.edit_manifest(lambda m: m["models"].update(profile=MODEL))
    publication.edit_manifest(lambda m: m.update(profile_influenced_surface=True))
    return publication


LEAVE_OUT = {"contamination__on_violation": "exclude_row"}


def test_rows_that_two_roles_read_are_left_out_once(shaped, tmp_path):
    listed = [candidate("writer", **PIN), candidate("alpha", **PIN)]
    folder = gate(shaped, tmp_path / "run", *listed, **LEAVE_OUT)
    audit = audit_config(shaped.reload())
    count = len(shaped.task_ids())

    eligible = {c["alias"]: c["eligible_task_count"] for c in audit["candidates"]}
    assert eligible == {"alpha": count, "writer": count - 2 * READ + 1}
    assert audit["common_task_count"] == eligible["writer"]
    assert audit_run(folder)["problems"] == []


def test_reader_of_every_row_has_no_task_left(publication, tmp_path):
    publication.edit_manifest(lambda m: m["models"].update(surface_judge=MODEL))
    listed = [candidate("writer", **PIN), candidate("alpha", **PIN)]
    folder = gate(publication, tmp_path / "run", *listed, **LEAVE_OUT)
    audit = audit_config(publication.reload())

    assert [(r["code"], r["candidate"]) for r in audit["refusals"]] == [
        ("eval_contamination_empty_task_set", "writer"),
        ("eval_contamination_empty_task_set", None),
    ]
    found = audit_run(folder)
    assert (found["status"], found["problems"]) == ("refused", [])


def test_every_pair_is_shown_with_axis_rows_and_what_settles_it(publication):
    audit = audit_config(
        configured(publication, candidate("alpha", **PIN), named_alike())
    )

    found = {c["alias"]: c["comparisons"][0] for c in audit["candidates"]}
    assert found["alpha"]["verdict"] == "different"
    assert found["alpha"]["decided_by"] == "name"
    assert found["writer"]["verdict"] == "unknown"
    assert found["writer"]["decided_by"] == "name"
    assert "weights_digest" in found["writer"]["settled_by"]
    assert found["writer"]["task_count"] == READ
    assert found["writer"]["first_task_ids"] == publication.task_ids()[:READ]


def test_row_that_no_role_claims_is_refused(publication):
    other = {**MODEL, "canonical_id": "nim:other@provider_managed"}
    publication.edit_manifest(lambda m: m["models"].update(paraphrase=other))
    config = configured(publication, candidate("alpha", **PIN))

    with pytest.raises(SourceError) as caught:
        audit_config(config)

    assert caught.value.code == "eval_source_model_exposure_invalid"


def test_changed_table_is_refused(publication):
    config = configured(publication, candidate("alpha", **PIN))
    with (publication.benchmark / "benchmark.parquet").open("ab") as table:
        table.write(b"more")

    with pytest.raises(SourceError):
        audit_config(config)


@pytest.mark.parametrize(
    ("fail_on", "status"), [(None, 0), ("match", 0), ("unresolved", 1)]
)
def test_fail_on_decides_the_exit_status(publication, fail_on, status, capsys):
    configured(publication, named_alike())
    words = ["audit", str(publication.config), "--json"]

    assert main([*words, *(["--fail-on", fail_on] if fail_on else [])]) == status
    assert json.loads(capsys.readouterr().out)["counts"]["unknown"] == 1


def test_text_names_what_would_settle(publication, capsys):
    configured(publication, named_alike())

    assert main(["audit", str(publication.config)]) == 0
    shown = capsys.readouterr().out
    assert "unresolved" in shown
    assert "to settle" in shown


def gate(publication, folder, *listed, **changes):
    """Leave in a folder what the gates of a run leave there."""
    config = configured(publication, *listed, **changes)
    source = verify_source(config)
    folder.mkdir()
    write_source_report(folder, source)
    try:
        plan = authorize(config, source)
    except ContaminationError as error:
        write_plan_failure(folder, config, source, error)
        return folder
    write_plan_report(folder, plan)
    write_json_artifact(
        folder / "resolved_eval_config.json", config.resolved_document()
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_report_that_the_gate_wrote_follows(publication, tmp_path, case):
    listed, changes = CASES[case]
    found = audit_run(gate(publication, tmp_path / "run", *listed, **changes))

    assert found["problems"] == []
    assert found["follows"]


@pytest.mark.slow
@pytest.mark.parametrize("comparison_set", ["common_intersection", "per_candidate"])
@pytest.mark.parametrize("case", CASES)
def test_plan_that_the_gates_gave_is_the_one_that_follows(
    publication, tmp_path, case, comparison_set
):
    listed, changes = CASES[case]
    changes = {**changes, "contamination__comparison_set": comparison_set}
    folder = RunFolder(tmp_path / "run")
    folder.create()
    try:
        config = configured(publication, *listed, **changes)
        authorized = pass_gates(config, folder, probe=None)
    except (ConfigError, ContaminationError):
        assert case in REFUSED
        return
    assert case not in REFUSED
    write_authorized(folder, config, authorized, now=datetime.now(UTC))

    found = Findings()
    with PlanFile.open(folder.file("eval_plan")) as plan:
        source, report, resolved = (
            json.loads(folder.file(name).read_text("utf-8"))
            for name in (
                "source_verification_report",
                "contamination_report",
                "resolved_eval_config",
            )
        )
        check_source(source, plan.header, found)
        check_plan(report, source, resolved, plan.header, found)
        check_kinds(source, plan, found)

    assert found.violations == ()


@pytest.fixture
def stored(publication, tmp_path):
    return gate(publication, tmp_path / "run", candidate("alpha", **PIN), named_alike())


def edited(folder, edit, name=REPORT_NAME):
    file = folder / name
    payload = json.loads(file.read_text())
    edit(payload)
    text = json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False)
    file.write_text(text + "\n")
    return audit_run(folder)


def _drop_collision(report):
    report["candidates"][1]["collisions"] = []


def _other_axis(report):
    report["candidates"][1]["collisions"][0]["decided_by"] = "label"


def _leave_task(report):
    report["candidates"][0]["eligible_task_ids"].pop()


def _publish(report):
    report["publication_allowed"] = True


def _state_identity(report):
    report["common"] = {"count": 1, "hash": "sha256:" + "0" * 64}


@pytest.mark.parametrize(
    "edit", [_drop_collision, _other_axis, _leave_task, _publish, _state_identity]
)
def test_edited_report_does_not_follow(stored, edit):
    assert not edited(stored, edit)["follows"]


def test_report_with_another_input_does_not_follow(stored):
    found = edited(
        stored,
        lambda source: source["exposures"][0]["claim"].update(provider="elsewhere"),
        "source_verification_report.json",
    )

    assert {p["where"] for p in found["problems"]} >= {
        "contamination_report.json.plan_identity"
    }


@pytest.mark.parametrize("code", ["whatever", "eval_contamination_unresolved"])
def test_refusal_for_a_reason_that_nothing_gives_does_not_follow(
    publication, tmp_path, code
):
    folder = gate(publication, tmp_path / "run", candidate("writer", **PIN))
    assert audit_run(folder)["follows"]

    found = edited(
        folder, lambda report: report["error"].update(code=code), FAILURE_NAME
    )

    assert [p["where"] for p in found["problems"]] == [f"{FAILURE_NAME}, error.code"]


def test_glob_passes_files_over_and_counts_a_run_once(stored, tmp_path, capsys):
    (tmp_path / "notes.txt").touch()
    shutil.copytree(stored, tmp_path / "run-2")
    words = [str(tmp_path / "*n*"), str(tmp_path / "run-2" / ".." / "run-2")]

    main(["audit", *words, "--json"])

    assert json.loads(capsys.readouterr().out)["totals"]["runs"] == 2


def test_run_that_its_inputs_refuse_is_named(publication, tmp_path):
    folder = gate(
        publication,
        tmp_path / "run",
        candidate("writer", **PIN),
        contamination__enforce=False,
    )
    enforced = configured(publication, candidate("writer", **PIN))
    (folder / "resolved_eval_config.json").unlink()
    write_json_artifact(
        folder / "resolved_eval_config.json", enforced.resolved_document()
    )

    problems = audit_run(folder)["problems"]

    assert any("refuse it" in each["problem"] for each in problems)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"candidates": 1}', "\ud800"])
def test_broken_report_is_a_problem_of_its_run(stored, text):
    (stored / REPORT_NAME).write_bytes(text.encode("utf-8", "surrogatepass"))

    found = audit_run(stored)

    assert not found["follows"]


@pytest.mark.parametrize(
    "candidates",
    [
        None,
        [None],
        [{"alias": [], "premature_knowledge": {"by_template": []}}],
        [{"alias": "alpha", "premature_knowledge": {"by_template": [None]}}],
        [
            {
                "alias": "alpha",
                "premature_knowledge": {
                    "by_template": [],
                    **dict.fromkeys(
                        ("values", "appeared", "decoys", "decoys_appeared"), 10**30
                    ),
                },
            }
        ],
    ],
)
def test_counts_that_no_run_writes_are_left_out(stored, candidates, capsys):
    report = {"candidates": candidates, "eval_run_id": "run"}
    (stored / "eval_report.json").write_text(json.dumps(report), "utf-8")

    assert main(["audit", str(stored)]) == 0
    assert "n/a" in capsys.readouterr().out


def test_number_of_rows_that_is_none_is_a_problem_of_its_run(stored):
    def count(report):
        for exposure in report["exposures"]:
            exposure["task_count"] = 10**30

    edited(stored, count, "source_verification_report.json")

    assert audit_run(stored)["status"] == "unreadable"


def test_folder_without_a_report_is_a_problem_of_its_run(tmp_path):
    assert audit_run(tmp_path)["status"] == "unreadable"


IDS = ["a", 'quo"te', "back\\slash", "søster", "line\nbreak"]


@pytest.mark.parametrize("indent", [2, None, 4])
def test_slim_reading_hashes_lists_in_every_layout(tmp_path, indent):
    report = {"common": IDS, "candidates": [{"task_ids": IDS[:1], "alias": "x"}]}
    report["excluded_task_ids"] = []
    file = tmp_path / "report.json"
    file.write_text(
        json.dumps(report, indent=indent, sort_keys=True, ensure_ascii=False) + "\n"
    )

    slim = read_slim(file)

    assert slim["common"] == {"count": len(IDS), "hash": content_hash(IDS)}
    assert slim["candidates"][0]["task_ids"]["hash"] == content_hash(["a"])
    assert slim["excluded_task_ids"] == {"count": 0, "hash": content_hash([])}


@pytest.mark.parametrize("text", ['"a"\n', '"a",\n', '"a"\n"b"\n', '"a",\n1\n'])
def test_slim_reading_is_as_strict_as_any(tmp_path, text):
    file = tmp_path / "report.json"
    file.write_text(f'{{\n  "common": [\n{text}\n')

    with pytest.raises(ArtifactError):
        read_slim(file)


def test_claims_on_unresolved_comparisons_are_counted_across_runs(stored, tmp_path):
    for number in range(3):
        shutil.copytree(stored, tmp_path / f"run-{number}")
    edited(tmp_path / "run-2", _drop_collision)

    with audit_runs(sorted(tmp_path.glob("run-*"))) as audited:
        totals, claims = audited.totals(), audited.unresolved_claims(10)
        models = audited.candidates(10)

    assert (totals["runs"], totals["follow"], totals["do_not_follow"]) == (3, 2, 1)
    assert [claim["runs"] for claim in claims] == [3]
    assert {m["canonical_id"]: m["unresolved"] for m in models} == {
        "nim:alpha@" + "a" * 40: 0,
        "elsewhere:writer@" + "a" * 40: 3,
    }


def test_glob_of_runs_is_audited_and_shown(stored, capsys):
    pattern = str(stored.parent / "ru*")

    assert main(["audit", pattern]) == 0
    assert "1 runs: 1 reports follow" in capsys.readouterr().out
    assert main(["audit", pattern, "--json", "--fail-on", "unresolved"]) == 1
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


@pytest.mark.parametrize("words", [["nowhere"], ["no*where"]])
def test_path_that_leads_nowhere_is_a_usage_error(words, capsys, tmp_path):
    assert main(["audit", *(str(tmp_path / word) for word in words)]) == 2


def test_config_among_runs_is_a_usage_error(stored, publication):
    assert main(["audit", str(stored), str(publication.config)]) == 2
