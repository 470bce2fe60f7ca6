"""A comparison as JSON and as text.

The text says first which records were used, then the label, then why, and only then
any figure. Nothing is ranked across groups, and no two scores are subtracted unless
they are of one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from harness.canonical import Json, canonical_json
from harness.evaluations.comparison import (
    CAUTION,
    OBSERVED,
    Comparison,
    Group,
)
from harness.evaluations.entry import Entry
from harness.evaluations.pairs import ConditionDifference, Label, Pair
from harness.evaluations.record import LINEAGE
from harness.evaluations.samples import NoRowValues, RowValues, row_values
from harness.evaluations.selection import Selected
from harness.report.terminal import on_lines_of_their_own
from harness.stats.signs import SignCounts, count_signs

SIGN_TEST: Final = (
    "exact two-sided sign test over the pairs that are no tie, which takes pairs to be "
    "independent"
)
_PLACES: Final = 4
_NAMED_PAIRS: Final = 4


@dataclass(frozen=True, slots=True)
class Paired:
    """Two entries of a group, row by row."""

    left: Entry
    right: Entry
    measure: str
    signs: SignCounts | None
    reason: str | None
    """Why there are no counts."""
    unpaired: int
    """Rows that only one of them has."""


def pair_rows(comparison: Comparison) -> list[Paired]:
    """Pair the rows of every two scored entries that are not incompatible.

    Raises EvidenceError where a file of rows is not the record's.
    """
    pairs = [
        (each.left, each.right)
        for each in comparison.pairs
        if each.label is not Label.INCOMPATIBLE
        and each.left.score is not None
        and each.right.score is not None
    ]
    values = {each.name: row_values(each) for each in chain.from_iterable(pairs)}
    return [
        _paired(left, right, values[left.name], values[right.name])
        for left, right in pairs
    ]


def _paired(
    left: Entry,
    right: Entry,
    ours: RowValues | NoRowValues,
    theirs: RowValues | NoRowValues,
) -> Paired:
    if isinstance(ours, NoRowValues):
        return Paired(left, right, "", None, f"{left.name}: {ours.reason}", 0)
    if isinstance(theirs, NoRowValues):
        return Paired(left, right, "", None, f"{right.name}: {theirs.reason}", 0)
    shared = ours.by_row.keys() & theirs.by_row.keys()
    return Paired(
        left,
        right,
        ours.measure,
        count_signs((ours.by_row[row], theirs.by_row[row]) for row in sorted(shared)),
        None,
        len(ours.by_row.keys() ^ theirs.by_row.keys()),
    )


def comparison_payload(
    selected: Sequence[Selected], comparison: Comparison, paired: Sequence[Paired]
) -> dict[str, Json]:
    """Return the object that `--json` shows."""
    return {
        "records": [_record(each) for each in selected],
        "label": comparison.label.value,
        "reasons": list(comparison.reasons),
        "pairs": [_pair(each) for each in comparison.pairs],
        "groups": [_group(each) for each in comparison.groups],
        "scores": [_score(each) for each in comparison.entries],
        "comparators": list(_comparators(selected)),
        "paired_rows": [_paired_payload(each) for each in paired],
        "statements": _statements(comparison),
    }


def _record(each: Selected) -> dict[str, Json]:
    record = each.record
    return {
        "run": each.run,
        "record": record.record_id,
        "chosen": each.chosen,
        "kind": record.payload["kind"],
        "others": [
            {"record": other.record_id, "status": other.payload["status"]}
            for other in each.others
        ],
        "fingerprint": record.payload["protocol"]["fingerprint"],
        "parent": record.payload["parent"],
        "holdout": record.payload["holdout"],
    }


def _pair(pair: Pair) -> dict[str, Json]:
    return {
        "left": pair.left.name,
        "right": pair.right.name,
        "label": pair.label.value,
        "reasons": [
            {
                "code": reason.code,
                "fields": [
                    {"field": each.field, "left": each.left, "right": each.right}
                    for each in reason.fields
                ],
            }
            for reason in pair.reasons
        ],
        "unknown_fields": list(pair.unknown_fields),
        "differences": list(map(_condition, pair.differences)),
        "models": list(map(_condition, pair.models)),
    }


def _condition(each: ConditionDifference) -> dict[str, Json]:
    return {
        "condition": each.condition,
        "kind": each.kind,
        "left": list(each.left),
        "right": list(each.right),
    }


def _group(group: Group) -> dict[str, Json]:
    return {
        "members": [each.name for each in group.members],
        "label": None if group.label is None else group.label.value,
        "ranking": [
            {
                "place": place.place,
                "members": [each.name for each in place.members],
                "score": place.score,
            }
            for place in group.ranking
        ],
        "not_scored": [
            {"name": each.name, "reason": each.not_scored} for each in group.not_scored
        ],
    }


def _score(entry: Entry) -> dict[str, Json]:
    primary = entry.record.payload["primary_metric"]
    return {
        "name": entry.name,
        "metric": entry.metric,
        "metric_version": primary["version"],
        "score": entry.score,
        "not_scored": entry.not_scored,
        **{name: entry.figure.get(name) for name in ("numerator", "denominator")},
        "metrics": entry.subject["metrics"],
        "counts": entry.subject["counts"],
        "measurements": entry.subject["measurements"],
    }


def _comparators(selected: Sequence[Selected]) -> Iterator[dict[str, Json]]:
    for each in selected:
        for subject in each.record.payload["subjects"]:
            if subject["role"] == "comparator":
                yield {
                    "run": each.run,
                    "name": subject["name"],
                    "metrics": subject["metrics"],
                }


def _paired_payload(paired: Paired) -> dict[str, Json]:
    signs = paired.signs
    counts: dict[str, Json] = {"not_available": paired.reason}
    if signs is not None:
        counts = {
            "measure": paired.measure,
            "wins": signs.wins,
            "losses": signs.losses,
            "ties": signs.ties,
            "unpaired": paired.unpaired,
            "p_value": float(signs.p_value),
            "test": SIGN_TEST,
        }
    return {"left": paired.left.name, "right": paired.right.name, **counts}


def _statements(comparison: Comparison) -> list[str]:
    found = []
    if any(group.ranking for group in comparison.groups):
        found.append(OBSERVED)
    if any(group.label is Label.CROSS_RUNTIME for group in comparison.groups):
        found.append(CAUTION)
    if any(each.record.payload["parent"] for each in comparison.entries):
        found.append(LINEAGE)
    return found


def render_comparison(
    selected: Sequence[Selected], comparison: Comparison, paired: Sequence[Paired]
) -> str:
    """Return the text, ending with a newline."""
    lines = ["records used"]
    lines += [f"  {_used(each)}" for each in selected]
    lines += ["", f"label: {comparison.label.value}"]
    lines += _all_pair_lines(comparison.pairs)
    for group in comparison.groups:
        lines += _group_lines(group, len(comparison.groups))
    lines += _paired_lines(paired)
    lines += _comparator_lines(selected)
    lines += ["", *_statements(comparison)] if _statements(comparison) else []
    return on_lines_of_their_own(lines)


def _used(each: Selected) -> str:
    why = "chosen" if each.chosen else "default"
    others = ", ".join(
        f"{other.record_id} ({other.payload['status']})" for other in each.others
    )
    text = f"{each.run}: {each.record.record_id} ({why}); others: {others or 'none'}"
    parent = each.record.payload["parent"]
    if parent is not None:
        text += f"; parent: {parent['record_id']}"
    holdout = each.record.payload["holdout"]
    if holdout is not None and holdout["uses_before"]:
        text += f"; its holdout was consulted {holdout['uses_before']} times before"
    return text


def _all_pair_lines(pairs: Sequence[Pair]) -> list[str]:
    """Tell what lies between entries once for all pairs of which it is true."""
    if len(pairs) == 1:
        lines = _between(pairs[0])
        lines += [f"  {_condition_text(each)} (the models)" for each in pairs[0].models]
        return ["", *lines] if lines else []
    alike: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        alike.setdefault((pair.label.value, *_between(pair)), []).append(pair)
    lines = []
    for (label, *between), found in alike.items():
        names = [f"{each.left.name} and {each.right.name}" for each in found]
        rest = len(names) - _NAMED_PAIRS
        more = f"; {rest} more pairs" if rest > 0 else ""
        lines += ["", f"{label}: {'; '.join(names[:_NAMED_PAIRS])}{more}", *between]
    return lines


def _between(pair: Pair) -> list[str]:
    lines = []
    for reason in pair.reasons:
        lines.append(f"  {reason.code}")
        lines += [
            f"    {each.field}: {_value(each.left)} | {_value(each.right)}"
            for each in reason.fields
        ]
    lines += [f"  unknown field: {field}" for field in pair.unknown_fields]
    return lines + [f"  {_condition_text(each)}" for each in pair.differences]


def _condition_text(each: ConditionDifference) -> str:
    left, right = (", ".join(map(_value, values)) for values in (each.left, each.right))
    word = "" if each.kind == "differs" else f" [{each.kind}]"
    return f"{each.condition}{word}: {left}" + (f" | {right}" * (left != right))


def _value(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _group_lines(group: Group, groups: int) -> list[str]:
    if group.label is None:
        alone = [f"  {each.name}: {_figure(each)}" for each in group.members]
        return ["", "not ranked", *alone]
    metric = group.members[0].metric
    title = f"ranking by {metric}"
    if groups > 1:
        title += f" of {', '.join(each.name for each in group.members)}"
    lines = ["", title]
    first = group.ranking[0].score if group.ranking else None
    for place in group.ranking:
        names = " = ".join(each.name for each in place.members)
        tied = "  (tied)" if len(place.members) > 1 else ""
        figures = "; ".join(dict.fromkeys(_figure(each) for each in place.members))
        gap = ""
        if first is not None and place.score != first:
            gap = f"  {place.score - first:+.{_PLACES}f}"
        lines.append(f"  {place.place}. {names}  {figures}{gap}{tied}")
    lines += [
        f"  not scored: {each.name} ({each.not_scored})" for each in group.not_scored
    ]
    return lines


def _figure(entry: Entry) -> str:
    if entry.score is None:
        return f"not scored ({entry.not_scored})"
    return _metric_text(entry.figure)


def _metric_text(figure: Mapping[str, Json]) -> str:
    if figure["value"] is None:
        return "not scored"
    text = f"{figure['value']:.{_PLACES}f}"
    if figure.get("denominator") is not None:
        text += f" ({figure['numerator']}/{figure['denominator']})"
    return text


def _paired_lines(paired: Sequence[Paired]) -> list[str]:
    lines: list[str] = ["", f"rows in pairs ({SIGN_TEST})"] if paired else []
    for each in paired:
        names = f"{each.left.name} against {each.right.name}"
        if each.signs is None:
            lines.append(f"  {names}: not available ({each.reason})")
            continue
        signs = each.signs
        lines += [
            f"  {names}: {signs.wins} wins, {signs.losses} losses, {signs.ties} ties"
            f" of {signs.pairs}, p = {float(signs.p_value):.4g} ({each.measure})"
        ]
        if each.unpaired:
            lines.append(f"    {each.unpaired} rows stand in one of them only")
    return lines


def _comparator_lines(selected: Sequence[Selected]) -> list[str]:
    lines: list[str] = []
    for each in selected:
        metric = each.record.payload["primary_metric"]["name"]
        for subject in each.record.payload["subjects"]:
            figure = subject["metrics"].get(metric)
            if subject["role"] == "comparator" and figure is not None:
                text = _metric_text(figure)
                lines.append(f"  {each.run}, {subject['name']}: {text}")
    return ["", "comparators, not ranked", *lines] if lines else []
