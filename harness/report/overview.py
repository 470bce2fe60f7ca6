"""A run as one table: success with counts, gates that failed, stops by owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from harness.canonical import Json
from harness.report.run_view import view_run
from harness.report.terminal import table


def render_overview(report: Mapping[str, Json], *, width: int = 100) -> str:
    """Return one line a candidate from an `eval_report.json` payload."""
    view = view_run(report)
    payloads = {each["alias"]: each for each in report["candidates"]}
    rows = [
        (
            candidate.alias,
            candidate.success.counts,
            candidate.success.percent,
            _failed_gates(payloads[candidate.alias]),
            _stops(payloads[candidate.alias]),
        )
        for candidate in view.candidates
    ]
    headers = ("candidate", "success", "", "gates failed (episodes)", "stops by owner")
    return table(headers, rows, width=width)


def _failed_gates(candidate: Mapping[str, Json]) -> str:
    failed = [
        f"{gate['gate']} {gate['failed']}"
        for gate in candidate["gates"]
        if gate["failed"]
    ]
    return ", ".join(failed) or "none"


def _stops(candidate: Mapping[str, Json]) -> str:
    owners: Counter[str] = Counter()
    for entry in candidate["ledger"]:
        if entry["is_stop"]:
            owners[entry["owner"]] += entry["count"]
    return ", ".join(f"{owner} {n}" for owner, n in sorted(owners.items())) or "none"
