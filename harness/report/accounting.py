"""An account of published numbers as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.accounting.account import (
    NOT_A_RESCORE,
    Account,
    NewFigure,
    Status,
    counts,
)
from harness.canonical import Json
from harness.report.terminal import on_lines_of_their_own

_OTHER_VERSION: Final = "no change is stated: the versions of the metric differ"


def accounting_payload(accounts: Sequence[Account]) -> dict[str, Json]:
    """Return the object that `--json` shows."""
    return {
        "counts": dict(counts(accounts)),
        "numbers": [_number(each) for each in accounts],
        "replication_statement": NOT_A_RESCORE,
    }


def _number(each: Account) -> dict[str, Json]:
    published = each.published
    replication = _figure(each.replication)
    if replication is not None and published.replication is not None:
        replication["run"] = published.replication.name
    return {
        "place": published.place,
        "metric": published.metric,
        "run": None if published.run is None else published.run.name,
        "subject": published.subject,
        "status": each.status.value,
        "old": {
            "value": float(published.value),
            "metric_version": published.metric_version,
        },
        "new": _figure(each.new),
        "reasons": [reason.as_payload() for reason in each.reasons],
        "replication": replication,
        "note": each.note,
    }


def _figure(found: NewFigure | None) -> dict[str, Json] | None:
    if found is None:
        return None
    return {
        **found.metric.as_payload(),
        "metric_version": found.version,
        "change": found.change,
    }


def render_accounting(accounts: Sequence[Account]) -> str:
    """Return the text, ending with a newline."""
    lines = []
    for each in accounts:
        published = each.published
        lines += [
            f"{published.place}: {published.metric} {published.value} "
            f"(version {published.metric_version})",
            f"  {each.status.value}",
        ]
        if each.new is not None:
            same = each.status is Status.UNAFFECTED
            lines.append(f"    now {_text(each.new, same=same)}")
        if each.note is not None:
            lines.append(f"    {each.note}")
        lines += [
            f"    {reason.code}: {reason.as_payload()['detail']}"
            for reason in each.reasons
        ]
        if each.replication is not None:
            lines.append(f"    replication {_text(each.replication)}")
    listed = ", ".join(f"{n} {name}" for name, n in counts(accounts).items())
    lines += ["", listed]
    if any(each.replication is not None for each in accounts):
        lines.append(NOT_A_RESCORE)
    return on_lines_of_their_own(lines)


def _text(found: NewFigure, *, same: bool = False) -> str:
    metric = found.metric
    if metric.value is None:
        return f"not scored ({metric.reason})"
    text = f"{metric.value:.6g}"
    if metric.denominator is not None:
        text += f" ({metric.numerator}/{metric.denominator})"
    text += f", version {found.version}; "
    if same:
        return text + "the published number to the digits it was given"
    if found.change is None:
        return text + _OTHER_VERSION
    return text + f"change {found.change:+.6g}"
