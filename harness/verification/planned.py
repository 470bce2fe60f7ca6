"""The plan against the reports of the gates that it came from.

What the benchmark was is fixed by hashes alone, for it is not here. All else follows:
an oracle's identity from its description, the source's from what was verified of it,
the plan's from the contamination report, and from both reports who may be asked what,
whether the result may be published, and of which kinds the tasks are. So tasks cannot
leave a plan, nor a reason against publication a header, while the reports stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from harness.benchmark.model_identity import IdentityClaim
from harness.benchmark.stored_source import (
    PUBLICATION_LINEAGE,
    claimed_model,
    oracle_identity,
    source_identity,
)
from harness.canonical import Json, content_hash
from harness.errors import FairtrialError
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.plan_file import PlanFile, PlanHeader
from harness.verification.findings import Findings
from harness.verification.redaction import WithheldError

SOURCE_FILE: Final = ARTIFACT_FILES["source_verification_report"]
GATE_FILE: Final = ARTIFACT_FILES["contamination_report"]
PLAN: Final = "eval_plan.jsonl, record 1"
_LISTS: Final = ("eligible_task_ids", "excluded_task_ids")
_NO_PART_OF_PLAN: Final = ("status", "plan_identity", "checks")
_KINDS: Final = {
    "categories": "category",
    "difficulties": "difficulty",
    "turn_policies": "turn_policy",
}
Document = Mapping[str, Json]


def check_source(source: Document, header: PlanHeader, findings: Findings) -> None:
    """Derive the identities of oracle and source; a trace run's rests on its pack."""
    _equal(findings, f"{SOURCE_FILE}, status", "passed", source["status"])
    own, identity = oracle_identity(source), source_identity(source)
    where = f"{PLAN}, oracle_verification_identity"
    _equal(findings, where, own, header.oracle_verification_identity)
    if identity is None:
        findings.leave(
            "source_verification_identity",
            "it rests on the pack, which a trace run does not have; every statement "
            "of it was compared",
        )
        return
    where = f"{SOURCE_FILE}, oracle.verification_identity"
    _equal(findings, where, own, source["oracle"]["verification_identity"])
    where = f"{SOURCE_FILE}, verification_identity"
    _equal(findings, where, identity, source["verification_identity"])


def check_plan(
    report: Document,
    source: Document,
    resolved: Document,
    header: PlanHeader,
    findings: Findings,
) -> None:
    """Derive the plan's header from the contamination report, and that from both."""
    _equal(findings, f"{GATE_FILE}, status", "passed", report["status"])
    _equal(
        findings,
        f"{GATE_FILE}, plan_identity",
        content_hash(_with_lists_hashed(_without(report, _NO_PART_OF_PLAN))),
        report["plan_identity"],
    )
    policy = resolved["semantic_payload"]["contamination"]
    expected = {
        **{name: policy[name] for name in ("enforce", "on_violation")},
        "comparison_set": policy["comparison_set"],
        "exposures": source["exposures"],
        "source_task_ids_hash": source["task_index"]["task_ids_hash"],
        "non_publication_reasons": list(_reasons(report, source, resolved)),
    }
    expected["publication_allowed"] = not expected["non_publication_reasons"]
    for name, value in expected.items():
        _equal(findings, f"{GATE_FILE}, {name}", value, report[name])
    _check_claims(report, source, resolved, header, findings)
    _check_lists(report, source, findings)
    _check_header(report, header, findings)


def _reasons(report: Document, source: Document, resolved: Document) -> dict[str, None]:
    """Return why nothing may be published, in the order of a contamination report."""
    reasons = list(resolved["non_publication_reasons"])
    if source["lineage_policy"] != PUBLICATION_LINEAGE:
        reasons.append("source.lineage_policy")
    for candidate in report["candidates"]:
        verdicts = {each["verdict"] for each in candidate["collisions"]}
        for verdict, reason in (("match", "exposed"), ("unknown", "unresolved")):
            if verdict in verdicts:
                reasons.append(f"contamination.{reason}[{candidate['alias']}]")
    return dict.fromkeys(reasons)


def _check_claims(
    report: Document,
    source: Document,
    resolved: Document,
    header: PlanHeader,
    findings: Findings,
) -> None:
    """Compare each candidate's model with whoever read rows of the benchmark."""
    known = {each.alias: each.canonical_id for each in header.candidates}
    expected: list[Json] = []
    for section in resolved["semantic_payload"]["candidates"]:
        alias = section["alias"]
        label = known.get(alias)
        claim = IdentityClaim(
            provider=section["provider"],
            served_model=section["model"],
            weight_source=section["model_identity"]["source"],
            weight_model=section["model_identity"]["model"],
            revision=section["model_identity"]["revision"],
            weights_digest=section["model_identity"]["weights_digest"],
            label=label,
        )
        model = claimed_model(alias, str(label), claim, source["exposures"])
        expected.append(
            {
                "alias": alias,
                "canonical_model_identity": label,
                "identity": claim.semantic_payload(),
                "collisions": model.collisions(),
            }
        )
    expected.sort(key=lambda each: str(each["alias"]))
    stated = [
        {
            **{name: each[name] for name in expected[0] if name in each},
            "collisions": [_hashed(one, "task_ids") for one in each["collisions"]],
        }
        for each in report["candidates"]
    ]
    _equal(findings, f"{GATE_FILE}, candidates", expected, stated)


def _check_lists(report: Document, source: Document, findings: Findings) -> None:
    """Hold each candidate's lists, and the common one, to the benchmark's tasks."""
    index = source["task_index"]
    excluded: set[str] = set()
    excludes = report["enforce"] and report["on_violation"] == "exclude_row"
    for candidate in report["candidates"]:
        where = f"{GATE_FILE}, candidate {candidate['alias']}"
        asked, left_out = (candidate[name] for name in _LISTS)
        excluded.update(left_out)
        total = len({*asked, *left_out})
        _equal(findings, f"{where}, tasks", index["task_count"], total)
        if not left_out:
            place = f"{where}, eligible_task_ids"
            _equal(findings, place, index["task_ids_hash"], content_hash(asked))
        read = {
            task_id
            for collision in candidate["collisions"]
            if excludes and collision["verdict"] == "match"
            for task_id in collision["task_ids"]
        }
        _equal(findings, f"{where}, excluded", sorted(read), sorted(left_out))
    for candidate in report["candidates"]:
        asked = [
            each for each in candidate["eligible_task_ids"] if each not in excluded
        ]
        _equal(findings, f"{GATE_FILE}, common", asked, report["common"])


def _check_header(report: Document, header: PlanHeader, findings: Findings) -> None:
    """Derive who is asked what, and what reports will repeat, from the report."""
    shared = report["comparison_set"] == "common_intersection"
    asked = {
        each["alias"]: report["common"] if shared else each["eligible_task_ids"]
        for each in report["candidates"]
    }
    _equal(
        findings,
        f"{PLAN}, candidates",
        list(asked),
        [each.alias for each in header.candidates],
    )
    for each in header.candidates:
        own = header.task_ids if each.task_ids is None else each.task_ids
        where = f"{PLAN}, task_ids of {each.alias}"
        _equal(findings, where, asked.get(each.alias), list(own))
    everybody = {task_id for own in asked.values() for task_id in own}
    _equal(findings, f"{PLAN}, task_ids", sorted(everybody), sorted(header.task_ids))
    facts = {
        "eval_run_id": header.facts.get("eval_run_id"),
        "comparison_set": report["comparison_set"],
        "contamination_violations": [
            {"alias": candidate["alias"], **_hashed(collision, "task_ids")}
            for candidate in report["candidates"]
            for collision in candidate["collisions"]
            if collision["verdict"] == "match"
        ],
        "publication_allowed": report["publication_allowed"],
        "non_publication_reasons": report["non_publication_reasons"],
    }
    _equal(findings, f"{PLAN}, facts", facts, header.facts)


def check_kinds(source: Document, plan: PlanFile, findings: Findings) -> None:
    """Count the kinds of the planned tasks, where all of the benchmark are planned."""
    header, index = plan.header, source["task_index"]
    if len(header.task_ids) != index["task_count"]:
        findings.leave("kinds of tasks", "the source report counts them over all tasks")
        return
    found: dict[str, Counter[str]] = {name: Counter() for name in _KINDS}
    try:
        for task_id in header.task_ids:
            task = plan.task(task_id)
            for name, member in _KINDS.items():
                found[name][getattr(task, member)] += 1
    except WithheldError:
        findings.leave("kinds of tasks", "a task was withheld")
        return
    except FairtrialError as error:
        findings.add(error.violations)
        return
    for name, counts in found.items():
        where = f"{SOURCE_FILE}, task_index.{name}"
        _equal(findings, where, dict(counts), index[name])


def _with_lists_hashed(plan: Mapping[str, Json]) -> dict[str, Json]:
    return {
        **_hashed(plan, "common"),
        "candidates": [
            {
                **_hashed(each, *_LISTS),
                "collisions": [_hashed(c, "task_ids") for c in each["collisions"]],
            }
            for each in plan["candidates"]
        ],
    }


def _hashed(document: Document, *lists: str) -> dict[str, Json]:
    """Return the document with lists of ids as their numbers and hashes."""
    return {
        **document,
        **{
            name: {"count": len(document[name]), "hash": content_hash(document[name])}
            for name in lists
        },
    }


def _without(document: Document, names: Iterable[str]) -> dict[str, Json]:
    return {name: document[name] for name in document.keys() - set(names)}


def _equal(findings: Findings, where: str, expected: Json, actual: Json) -> None:
    findings.equal("what follows from the gate reports", where, expected, actual)
