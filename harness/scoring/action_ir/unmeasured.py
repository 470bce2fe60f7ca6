"""Which zeros of an aggregate are figures and which stand where nothing was measured.

The file of the contract writes 0.0 for an empty ratio. A reader is shown None there
instead, and only there: 0 of 5 is a figure, 0 of 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.canonical import Json

_MACRO_OVER: Final = {
    "tool_macro_f1": "per_tool",
    "tool_macro_balanced_accuracy": "per_tool",
    "argument_key_macro_f1": "sample_count",
    "argument_value_macro_f1": "sample_count",
}
"""What a mean is taken over; of nothing it is no figure."""
_GROUPS: Final = ("per_tool", "per_scenario_success", "per_gold_tool_success")
"""Figures by a name that rows are free to choose."""


def measures(aggregate: Mapping[str, Json]) -> dict[str, float | None]:
    """Return every share, score and mean by its dotted place, None if not measured.

    Counts are left out. A point of the risk curve always has rows.
    """
    return dict(_measures(aggregate))


def not_measured(aggregate: Mapping[str, Json]) -> list[str]:
    """Return the dotted places of what was not measured, sorted."""
    return sorted(
        place for place, value in measures(aggregate).items() if value is None
    )


def _measures(aggregate: Mapping[str, Json]) -> Iterator[tuple[str, float | None]]:
    for name, value in aggregate.items():
        if name in _MACRO_OVER:
            yield name, value if aggregate[_MACRO_OVER[name]] else None
        elif name in _GROUPS:
            for member, figures in value.items():
                yield from _figures(figures, f"{name}.{member}")
        elif isinstance(value, dict) and name != "failure_counts":
            yield from _figures(value, name)


def _figures(value: Json, place: str) -> Iterator[tuple[str, float | None]]:
    if "denominator" in value:
        yield place, value["value"] if value["denominator"] else None
    else:
        yield from _detection(value, place)


def _detection(value: Json, place: str) -> Iterator[tuple[str, float | None]]:
    hits, alarms = value["true_positive"], value["false_positive"]
    misses = value["false_negative"]
    yield f"{place}.precision", value["precision"] if hits + alarms else None
    yield f"{place}.recall", value["recall"] if hits + misses else None
    yield f"{place}.f1", value["f1"] if hits + alarms + misses else None
    if "balanced_accuracy" in value:
        yield f"{place}.balanced_accuracy", value["balanced_accuracy"]
