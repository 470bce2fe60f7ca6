"""An audit as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from harness.canonical import Json
from harness.report.terminal import table
from harness.visible_text import visible

MOST_RUNS: Final = 40
"""Runs that the text names one by one; those that need a look come first."""
MOST_PROBLEMS: Final = 5
"""Problems that are shown of one run."""
MOST_TEMPLATES: Final = 60
"""Templates in which something was written early."""
WIDTH: Final = 110
_VERDICTS: Final = {"match": "match", "unknown": "unresolved", "different": "different"}


def render_config_audit(audit: Mapping[str, Any]) -> str:
    """Return the decision of a config with every comparison."""
    lines = [
        f"{audit['source_run_id']}: {audit['source_task_count']} published rows, "
        f"{len(audit['exposures'])} models read some of them",
        "",
    ]
    pairs = [
        [
            candidate["alias"],
            pair["exposed_model"],
            pair["role"],
            _VERDICTS[pair["verdict"]],
            pair["decided_by"],
            f"{pair['task_count']}/{audit['source_task_count']}",
            pair["reason"],
        ]
        for candidate in audit["candidates"]
        for pair in candidate["comparisons"]
    ]
    if pairs:
        headers = ["candidate", "read by", "role", "verdict", "axis", "rows", "because"]
        lines += [table(headers, pairs, width=WIDTH), ""]
    settling = [
        f"to settle {candidate['alias']} and {pair['exposed_model']}: "
        f"{pair['settled_by']}"
        for candidate in audit["candidates"]
        for pair in candidate["comparisons"]
        if pair["settled_by"]
    ]
    lines += [*settling, ""] if settling else []
    eligible = [
        [candidate["alias"], candidate["eligible_task_count"]]
        for candidate in audit["candidates"]
    ]
    lines += [table(["candidate", "tasks to ask"], eligible), ""]
    lines.append(f"in common: {audit['common_task_count']}")
    lines.append(f"decision: {audit['decision']}")
    lines += [f"  {_refusal(each)}" for each in audit["refusals"]]
    allowed = "yes" if audit["publication_allowed"] else "no"
    why = ", ".join(audit["non_publication_reasons"])
    lines.append(f"publication allowed: {allowed}{f' ({why})' if why else ''}")
    return visible("\n".join(lines) + "\n")


def _refusal(refusal: Mapping[str, Any]) -> str:
    who = refusal["candidate"] or "the common set"
    role = f", role {refusal['role']}" if refusal["role"] else ""
    return f"{refusal['code']}: {who}{role}"


def render_run_audit(
    totals: Mapping[str, int],
    runs: Iterator[Mapping[str, Any]],
    claims: Sequence[Mapping[str, Any]],
    candidates: Sequence[Mapping[str, Any]],
) -> str:
    """Return the audit of many runs; `runs` is read once."""
    listed = _first_runs(runs)
    lines = [
        f"{totals['runs']} runs: {totals['follow']} reports follow from their inputs, "
        f"{totals['do_not_follow']} do not",
        f"comparisons: {totals['match']} match, {totals['unknown']} unresolved, "
        f"{totals['different']} different",
        "",
        _runs(listed),
    ]
    if totals["runs"] > MOST_RUNS:
        lines.append(f"... {totals['runs'] - MOST_RUNS} more; --json has them all")
    lines += ["", *_problems(listed), *_knowledge(listed)]
    if claims:
        lines += ["claims that rest on unresolved comparisons", _claims(claims), ""]
    lines += ["by model", _candidates(candidates)]
    return visible("\n".join(lines) + "\n")


def _first_runs(runs: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Keep the first runs, with those first that need a look."""
    urgent: list[Mapping[str, Any]] = []
    calm: list[Mapping[str, Any]] = []
    for run in runs:
        kept = calm if run["follows"] and not _verdicts(run)["unknown"] else urgent
        if len(kept) < MOST_RUNS:
            kept.append(run)
    return list(islice(chain(urgent, calm), MOST_RUNS))


def _runs(listed: Sequence[Mapping[str, Any]]) -> str:
    headers = ["run", "status", "follows", "match", "unresolved", "early", "decoys"]
    rows = [
        [
            run["run"],
            run["status"],
            "yes" if run["follows"] else "no",
            _verdicts(run)["match"],
            _verdicts(run)["unknown"],
            *_early([each["premature_knowledge"] for each in run["candidates"]]),
        ]
        for run in listed
    ]
    return table(headers, rows, width=WIDTH)


def _problems(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for run in listed:
        for each in run["problems"][:MOST_PROBLEMS]:
            lines.append(f"{run['run']}: {each['where']}: {each['problem']}")
            lines.append(f"  expected: {each['expected']}")
            lines.append(f"  seen: {each['actual']}")
        if run["problem_count"] > MOST_PROBLEMS:
            lines.append(f"  ... {run['problem_count'] - MOST_PROBLEMS} more")
    return [*lines, ""] if lines else []


def _knowledge(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """List candidates and templates where something was written too early."""
    rows = [
        [
            run["run"],
            candidate["alias"],
            count.get("template_id"),
            count.get("kind"),
            *_early([count]),
        ]
        for run in listed
        for candidate in run["candidates"]
        for count in (candidate["premature_knowledge"] or {}).get("by_template", ())
        if count["appeared"] or count["decoys_appeared"]
    ]
    if not rows:
        return []
    headers = ["run", "candidate", "template", "kind", "early", "decoys"]
    more = len(rows) - MOST_TEMPLATES
    return [
        "written before it was told",
        table(headers, rows[:MOST_TEMPLATES], width=WIDTH),
        *([f"... {more} more; --json has them all"] if more > 0 else []),
        "",
    ]


def _verdicts(run: Mapping[str, Any]) -> dict[str, int]:
    counts = dict.fromkeys(_VERDICTS, 0)
    for candidate in run["candidates"]:
        for pair in candidate["comparisons"]:
            counts[pair["verdict"]] += 1
    return counts


def _early(found: Sequence[Mapping[str, Any] | None]) -> tuple[str, str]:
    """Return premature values and decoys as counts over what was watched."""
    known = [each for each in found if each is not None]
    if not known:
        return "n/a", "n/a"

    def total(name: str) -> int:
        return sum(each[name] for each in known)

    return (
        f"{total('appeared')}/{total('values')}",
        f"{total('decoys_appeared')}/{total('decoys')}",
    )


def _claims(claims: Sequence[Mapping[str, Any]]) -> str:
    headers = ["candidate", "read by", "axis", "runs", "first", "to settle"]
    rows = [
        [
            each["canonical_id"],
            each["exposed_model"],
            each["decided_by"],
            each["runs"],
            each["first_run"],
            each["settled_by"],
        ]
        for each in claims
    ]
    return table(headers, rows, width=WIDTH)


def _candidates(candidates: Sequence[Mapping[str, Json]]) -> str:
    headers = ["model", "runs", "exposed", "unresolved", "early", "decoys"]
    rows = [
        [
            each["canonical_id"],
            each["runs"],
            each["exposed"],
            each["unresolved"],
            *_early([each if each["values"] is not None else None]),
        ]
        for each in candidates
    ]
    return table(headers, rows, width=WIDTH)
