"""Rescoring: a new record beside the old one, or every reason why not."""

import json
from dataclasses import dataclass

import pytest

from harness.canonical import hash_file
from harness.errors import ScoringError, UsageError
from harness.report.rescore import render_rescore
from harness.run.rescore import rescore_run


def rescored(folder, policy, output):
    return rescore_run(
        folder, policy, output, render_page=lambda *_: "<!doctype html>\n"
    )


@pytest.fixture(scope="module")
def verbatim(bent, tmp_path_factory):
    """The trace run under `verbatim-text`, with the run's files before and after."""
    output = tmp_path_factory.mktemp("rescored") / "new"
    before = files(bent.output("trace"))
    result = rescored(bent.output("trace"), "verbatim-text", output)
    return Verbatim(result, output, before, files(bent.output("trace")))


@dataclass
class Verbatim:
    result: object
    folder: object
    before: dict
    after: dict


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def codes(error):
    return {violation.problem.partition(":")[0] for violation in error.violations}


def test_declared_policy_gives_the_recorded_report(bent, tmp_path):
    result = rescored(bent.output("trace"), None, tmp_path / "new")

    assert result.report == bent.report("trace")
    assert result.record["verdict_changes"] == []


def test_old_record_stays_as_it_was(verbatim):
    assert verbatim.after == verbatim.before


def test_every_changed_verdict_is_listed_with_its_gate(verbatim):
    changes = verbatim.result.record["verdict_changes"]

    candidates = verbatim.result.report["candidates"]
    counts = {c["alias"]: c["successful_tasks"] for c in candidates}
    assert {c["candidate_alias"] for c in changes} == {"chatty"}
    assert {(c["recorded"], c["verdict"]) for c in changes} == {("success", "failure")}
    assert all("text_turn" in c["gates_now_against"] for c in changes)
    assert counts["chatty"] == 50 - len(changes)


def test_policy_that_ends_a_trace_earlier_gives_what_a_run_under_it_gives(
    bent, verbatim
):
    live = bent.report("verbatim")["candidates"][0]

    candidates = verbatim.result.report["candidates"]
    again = next(c for c in candidates if c["alias"] == "chatty")
    assert (again["gates"], again["metrics"]) == (live["gates"], live["metrics"])


def test_another_policy_than_the_runs_own_is_not_published(verbatim):
    report = verbatim.result.report

    assert report["publication_allowed"] is False
    assert "rescore.policy" in report["non_publication_reasons"]


def test_folder_holds_what_the_record_names(verbatim):
    record, new = verbatim.result.record, verbatim.folder

    artifacts = record["artifacts"]
    assert json.loads((new / "eval_record.json").read_text()) == record
    assert artifacts == {name: hash_file(new / name) for name in artifacts}
    assert set(artifacts) == {"eval_report.json", "report.html"}
    assert {path.name for path in new.iterdir()} == {
        "eval_record.json",
        "eval_record_files.json",
        "parent",
        record["task_rows"]["file"],
        *artifacts,
    }


def test_record_names_parent_evidence_and_policy(bent, verbatim):
    path = bent.output("trace") / "eval_manifest.json"
    record = verbatim.result.record

    parent = record["parent"]
    assert parent["manifest_content_hash"] == hash_file(path)
    assert parent["record_hash"] == hash_file(path.with_name("eval_record.json"))
    assert parent["record_id"] == "original"
    assert "came before" in parent["statement"]
    assert parent["evidence_root"] == json.loads(path.read_text())["merkle_root"]
    assert record["scoring_policy"]["intermediate_text_matching"] == "verbatim"
    assert record["scoring_policy_hash"] != parent["scoring_policy_hash"]


def test_same_evidence_and_policy_give_the_same_files(bent, verbatim, tmp_path):
    rescored(bent.output("trace"), "verbatim-text", tmp_path / "again")

    assert files(tmp_path / "again") == files(verbatim.folder)


@pytest.mark.parametrize(
    ("name", "policy", "expected"),
    [
        ("verbatim", "structural-text", {"evidence_ends_early"}),
        ("executable", "verbatim-text", {"conversation_ends_earlier"}),
        ("trace", "assertions-only", {"trace_only_evidence"}),
        ("trace", "strict-002", {"first_response_differs"}),
    ],
)
def test_policy_without_evidence_is_refused_by_code(
    bent, tmp_path, name, policy, expected
):
    with pytest.raises(ScoringError) as caught:
        rescored(bent.output(name), policy, tmp_path / "new")

    assert codes(caught.value) == expected
    assert caught.value.code.endswith("_scoring_policy_unsupported")
    assert list(tmp_path.iterdir()) == []


def test_report_states_which_rules_can_change(bent):
    rules = bent.report("trace")["rescorable"]["rules"]

    assert rules["task_success"] == {
        "support": "never",
        "reason_codes": ["trace_only_evidence"],
    }
    assert rules["respect_call_group"]["support"] == "always"


def test_policy_file_changes_the_rules_that_it_names(bent, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("scoring:\n  task_success: assertions_only\n")

    record = rescored(bent.output("executable"), str(file), tmp_path / "new").record

    assert record["policy_name"] == "file"
    assert record["scoring_policy"]["task_success"] == "assertions_only"


@pytest.mark.parametrize(
    "text",
    [
        "scoring: {respect_call_order: maybe}\n",
        "scoring: {contract: mine.md}\n",
        "scoring: {speed: 3}\n",
        "task_success: assertions_only\n",
        "scoring: [\n",
    ],
)
def test_policy_file_that_is_none_is_a_usage_error(bent, tmp_path, text):
    file = tmp_path / "policy.yaml"
    file.write_text(text)

    with pytest.raises(UsageError) as caught:
        rescored(bent.output("trace"), str(file), tmp_path / "new")

    assert caught.value.code == "eval_cli_invalid"


@pytest.mark.parametrize("policy", ["int-equals-float", "no-such-policy"])
def test_name_that_no_contract_states_is_a_usage_error(bent, tmp_path, policy):
    with pytest.raises(UsageError):
        rescored(bent.output("trace"), policy, tmp_path / "new")


def test_output_inside_the_run_is_refused(bent):
    with pytest.raises(UsageError):
        rescored(bent.output("trace"), None, bent.output("trace") / "again")


def test_text_lists_changes_beside_both_scores(verbatim):
    result = verbatim.result

    text = render_rescore(result.record, result.report, result.parent_report)

    changes = result.record["verdict_changes"]
    assert f"verdicts changed: {len(changes)}" in text
    assert text.count("success->failure") == len(changes)
