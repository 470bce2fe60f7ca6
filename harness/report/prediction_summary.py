"""The record of a predict run as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.canonical import Json
from harness.report.terminal import table, wrap
from harness.visible_text import visible

_NOT_MEASURED = "not measured"


def render_predictions(
    record: Mapping[str, Json], out_dir_label: str, *, width: int = 100
) -> str:
    """Return an evaluation record as text that ends with a newline.

    `out_dir_label` is how the caller names the folder; `width` is in columns.
    """
    sections = [
        f"Evaluation {visible(str(record['record_id']))}: {record['status']}",
        _metrics(record, width),
        *_measurements(record, width),
        *_lineage(record, width),
        f"Evidence: {visible(out_dir_label)}",
    ]
    return "\n\n".join(sections) + "\n"


def _metrics(record: Mapping[str, Json], width: int) -> str:
    subjects = record["subjects"]
    primary = record["primary_metric"]["name"]
    names = dict.fromkeys([primary, *(n for each in subjects for n in each["metrics"])])
    rows = [
        (
            f"{name} (primary)" if name == primary else name,
            *(_figure(each["metrics"].get(name)) for each in subjects),
        )
        for name in names
    ]
    headers = ("metric", *(f"{each['name']} ({each['role']})" for each in subjects))
    return table(headers, rows, width=width)


def _figure(metric: Json) -> str:
    if metric is None or metric.get("value") is None:
        return _NOT_MEASURED
    value = metric["value"]
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    if metric.get("denominator") is None:
        return text
    return f"{text}  {metric['numerator']}/{metric['denominator']}"


def _measurements(record: Mapping[str, Json], width: int) -> Iterator[str]:
    rows = [
        (
            each["name"],
            figure["name"],
            _NOT_MEASURED if figure["value"] is None else f"{figure['value']:g}",
            figure["unit"],
            figure["boundary"],
        )
        for each in record["subjects"]
        for figure in each["measurements"]
    ]
    if rows:
        headers = ("subject", "measured", "value", "unit", "what it measures")
        yield table(headers, rows, width=width)


def _lineage(record: Mapping[str, Json], width: int) -> Iterator[str]:
    parent, holdout = record.get("parent"), record.get("holdout")
    if isinstance(parent, dict):
        yield "\n".join(wrap(visible(parent["statement"]), width))
    if isinstance(holdout, dict):
        uses = f"Holdout, uses before this one: {holdout['uses_before']}. "
        yield "\n".join(wrap(uses + visible(holdout["statement"]), width))
