"""A plan that its gates did not give is named, however well all hashes fit."""

import pytest

from harness.audit.runs import audit_run
from harness.conversation.task import TaskSpec
from harness.evidence.plan_file import PLAN_FILE
from harness.verification.planned import GATE_FILE, SOURCE_FILE
from harness.verification.verify import verify
from tests.verification.runs import (
    forge_json,
    forge_record,
    lines_of,
    make_consistent,
    publish_again,
    wheres,
)

PLAN = PLAN_FILE.file_name
HASH = "sha256:" + "a" * 64


def forge_header(run, **members):
    forge_record(
        run / PLAN, 1, lambda payload: {"header": {**payload["header"], **members}}
    )


def header_of(run):
    found = {}
    forge_record(run / PLAN, 1, lambda payload: found.update(payload) or payload)
    return found["header"]


def test_candidate_that_is_asked_less_than_it_was_allowed_is_named(run):
    header = header_of(run)
    first, *others = header["candidates"]
    less = {**first, "task_ids": header["task_ids"][:1]}
    forge_header(run, candidates=[less, *others])
    publish_again(run)

    # What it was asked beyond that is named too, as work of no plan.
    assert f"{PLAN}, record 1, task_ids of {first['alias']}" in wheres(verify(run))


def test_task_that_left_the_plan_is_missed(run):
    forge_header(run, task_ids=header_of(run)["task_ids"][:-1])
    (run / PLAN).write_bytes(b"".join(lines_of(run / PLAN)[:-1]))
    publish_again(run)

    found = wheres(verify(run))
    assert f"{PLAN}, record 1, task_ids" in found


def test_candidate_that_is_planned_twice_is_named(traced):
    (candidate,) = header_of(traced)["candidates"]
    forge_header(traced, candidates=[candidate, candidate])
    publish_again(traced)

    assert f"{PLAN}, record 1, candidates" in wheres(verify(traced))


def test_reasons_against_publication_cannot_leave_the_header(run):
    facts = header_of(run)["facts"]
    assert not facts["publication_allowed"]
    allowed = {"publication_allowed": True, "non_publication_reasons": []}
    forge_header(run, facts={**facts, **allowed})
    publish_again(run)

    assert wheres(verify(run)) == [f"{PLAN}, record 1, facts"]


def test_reasons_cannot_leave_the_gate_report_either(run):
    allowed = {"publication_allowed": True, "non_publication_reasons": []}
    forge_json(run / GATE_FILE, lambda report: {**report, **allowed})
    make_consistent(run)

    found = wheres(verify(run))
    assert f"{GATE_FILE}, plan_identity" in found
    assert f"{GATE_FILE}, non_publication_reasons" in found


def test_other_oracle_is_named(run):
    forge_header(run, oracle_verification_identity=HASH)
    publish_again(run)

    assert f"{PLAN}, record 1, oracle_verification_identity" in wheres(verify(run))


@pytest.mark.parametrize(
    ("member", "where"),
    [
        ("claim_scope", "verification_identity"),
        ("source_manifest_hash", "verification_identity"),
        ("oracle", "oracle.verification_identity"),
        ("exposures", "verification_identity"),
    ],
)
def test_source_report_is_held_to_its_identity(run, member, where):
    def edit(report):
        value = report[member]
        if member == "oracle":
            return {**report, member: {**value, "pack_version": "9"}}
        return {**report, member: [HASH] if member == "exposures" else HASH}

    forge_json(run / SOURCE_FILE, edit)
    make_consistent(run)

    assert f"{SOURCE_FILE}, {where}" in wheres(verify(run))


def test_who_read_the_benchmark_is_compared_again(run):
    reader = {}

    def claim(report):
        reader.update(report["candidates"][0]["identity"])
        return report

    def expose(report):
        exposure = {
            "role": "surface_judge",
            "scope": "all_published_rows",
            "claim": reader,
            "task_count": report["task_index"]["task_count"],
            "task_ids_hash": report["task_index"]["task_ids_hash"],
        }
        return {**report, "exposures": [exposure]}

    forge_json(run / GATE_FILE, claim)
    forge_json(run / SOURCE_FILE, expose)
    make_consistent(run)

    assert f"{GATE_FILE}, candidates" in wheres(verify(run))


def test_audit_of_a_finished_run_reads_the_files_of_the_run(run):
    assert audit_run(run)["follows"]
    forge_json(run / SOURCE_FILE, lambda report: {**report, "exposures": []})
    forge_json(run / SOURCE_FILE, lambda report: {**report, "claim_scope": "more"})

    named = {problem["where"] for problem in audit_run(run)["problems"]}
    assert f"{SOURCE_FILE}, verification_identity" in named
    assert any("source_verification_report.content_hash" in where for where in named)


@pytest.mark.parametrize("name", [SOURCE_FILE, GATE_FILE])
def test_report_of_a_gate_that_says_nothing_is_named(run, name):
    forge_json(run / name, lambda _: {})
    make_consistent(run)

    found = wheres(verify(run))
    assert f"{name}, eval_config_hash" in found
    assert name in found


def test_kinds_of_tasks_are_those_of_the_benchmark(traced):
    def harder(payload):
        spec = TaskSpec.from_payload({**payload["task"], "difficulty": "other"}, "")
        return {"task": spec.semantic_payload(), "task_spec_hash": spec.identity_hash()}

    for number in range(2, len(lines_of(traced / PLAN)) + 1):
        forge_record(traced / PLAN, number, harder)
    publish_again(traced)

    assert wheres(verify(traced)) == [f"{SOURCE_FILE}, task_index.difficulties"]


@pytest.mark.parametrize(
    ("member", "value", "where"),
    [
        ("score", 1, "members"),
        ("schema_version", "7", "schema_version"),
        ("containment", {"level": "namespaces"}, "containment.level"),
    ],
)
def test_manifest_is_held_to_its_form(run, member, value, where):
    path = run / "eval_manifest.json"
    forge_json(path, lambda manifest: {**manifest, member: value})
    make_consistent(run)

    assert wheres(verify(run)) == [f"eval_manifest.json, {where}"]


def test_what_nobody_can_prove_of_the_machine_is_listed(run):
    assert any("runtime, timing" in what for what, _ in verify(run).findings.unchecked)


def test_plan_of_more_episodes_than_records_is_not_walked(run):
    forge_header(run, trials=1_000_000_000)
    make_consistent(run)

    assert "eval_plan.jsonl, record 1" in wheres(verify(run))
