"""A rescoring as text: success before and after, and every verdict that changed."""

from __future__ import annotations

from collections.abc import Mapping

from harness.canonical import Json
from harness.report.run_view import view_run
from harness.report.terminal import table
from harness.visible_text import visible


def render_rescore(
    record: Mapping[str, Json],
    report: Mapping[str, Json],
    parent_report: Mapping[str, Json],
    *,
    width: int = 100,
) -> str:
    """Return the text of a record beside both reports, ending with a newline."""
    sections = [
        f"Record {record['record_id']}: run {visible(report['eval_run_id'])} under "
        f"policy {record['policy_name']}\n{record['parent']['statement']}",
        _scores(report, parent_report, width),
        _changes(record, report["candidates"][0]["trials"], width),
    ]
    return "\n\n".join(sections) + "\n"


def _scores(
    report: Mapping[str, Json], parent_report: Mapping[str, Json], width: int
) -> str:
    before = {c.alias: c.success for c in view_run(parent_report).candidates}
    rows = [
        (c.alias, before[c.alias].counts, c.success.counts, c.success.percent, c.stops)
        for c in view_run(report).candidates
    ]
    headers = ("candidate", "recorded", "now", "of all", "stops")
    return table(headers, rows, width=width, indent=2)


def _changes(record: Mapping[str, Json], trials: int, width: int) -> str:
    changes = record["verdict_changes"]
    if not changes:
        return "verdicts changed: 0"
    rows = [
        (
            change["candidate_alias"],
            change["task_id"] + (f":{change['trial']}" if trials > 1 else ""),
            f"{change['recorded']}->{change['verdict']}",
            ", ".join(change["gates_now_against"]) or "-",
            ", ".join(change["gates_no_longer_against"]) or "-",
        )
        for change in changes
    ]
    headers = ("candidate", "task", "verdict", "gates now against", "no longer against")
    shown = table(headers, rows, width=width, indent=2)
    return f"verdicts changed: {len(changes)}\n{shown}"
