"""The result of a drill as text and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Final

from harness.canonical import Json
from harness.drill.booking import Entry
from harness.drill.cells import OWNERS
from harness.drill.drill import DrillResult

_CORNER: Final = "injected \\ booked"
_SHOWN: Final = 20
"""How many entries off the diagonal are spelled out."""


def render_drill(result: DrillResult) -> str:
    """Return what a person reads; the last line is the summary."""
    found = result.findings
    lines = [*_matrix_lines(found.matrix()), "", *_control_lines(result)]
    wrong = [entry for entry in found.entries if not entry.is_right]
    for title, entries in (
        ("Off the diagonal", wrong),
        ("Controls that did not succeed", found.disturbed_controls),
    ):
        lines += _entry_lines(title, entries)
    for title, texts in (
        ("Reports that contradict what was injected", found.contradictions),
        ("Planned, and no episode came to the place", found.unreached),
        ("No task of this pack has a place for", result.unplaceable),
        (f"Cannot be injected at level {result.level}", result.beyond),
    ):
        if texts:
            lines += ["", f"{title}:", *(f"  {text}" for text in texts)]
    lines += ["", summary_line(result)]
    return "\n".join(lines)


def summary_line(result: DrillResult) -> str:
    """Return the last line of a drill."""
    found = result.findings
    return (
        f"drill: injected {len(found.entries)}, "
        f"off the diagonal {found.off_the_diagonal}"
    )


def drill_report(result: DrillResult) -> dict[str, Json]:
    """Return the result as JSON."""
    found = result.findings
    kinds = Counter(entry.fault for entry in found.entries)
    return {
        "injected": len(found.entries),
        "off_the_diagonal": found.off_the_diagonal,
        "clean": result.is_clean,
        "matrix": {
            injected: {booked: count for booked, count in row.items() if count}
            for injected, row in found.matrix().items()
        },
        "kinds": dict(sorted(kinds.items())),
        "rounds": result.rounds,
        "tasks": result.tasks,
        "episodes": found.episodes,
        "undisturbed": found.undisturbed,
        "undisturbed_successes": found.undisturbed - len(found.disturbed_controls),
        "entries_off_the_diagonal": [
            _entry(entry) for entry in found.entries if not entry.is_right
        ],
        "disturbed_controls": [_entry(entry) for entry in found.disturbed_controls],
        "contradictions": list(found.contradictions),
        "unreached": list(found.unreached),
        "unplaceable": list(result.unplaceable),
        "level": result.level,
        "beyond_the_level": list(result.beyond),
    }


def _entry(entry: Entry) -> dict[str, Json]:
    return {
        "round": entry.round_number,
        "task_id": entry.task_id,
        "fault": entry.fault,
        "expected": entry.expected.as_text(),
        "booked": entry.booked.as_text(),
        "problem": entry.problem,
    }


def _matrix_lines(matrix: dict[str, dict[str, int]]) -> list[str]:
    """Draw the matrix without the owners that have nothing in it."""
    used = [
        owner
        for owner in OWNERS
        if any(matrix[owner].values()) or any(row[owner] for row in matrix.values())
    ]
    width = max(map(len, (*used, _CORNER)))
    head = "  ".join(f"{owner:>9}" for owner in used)
    lines = [f"{_CORNER:<{width}}  {head}"]
    for injected in used:
        counts = "  ".join(f"{matrix[injected][booked] or '.':>9}" for booked in used)
        lines.append(f"{injected:<{width}}  {counts}")
    return lines


def _control_lines(result: DrillResult) -> list[str]:
    found = result.findings
    kinds = len({entry.fault for entry in found.entries})
    good = found.undisturbed - len(found.disturbed_controls)
    rate = f"{good / found.undisturbed:.3f}" if found.undisturbed else "none left"
    return [
        f"{found.episodes} episodes in {result.rounds} runs over {result.tasks} tasks, "
        f"{kinds} kinds of faults",
        f"gold over the episodes without a fault: {good}/{found.undisturbed} = {rate}",
    ]


def _entry_lines(title: str, entries: list[Entry]) -> list[str]:
    if not entries:
        return []
    more = len(entries) - _SHOWN
    return [
        "",
        f"{title}:",
        *(f"  {entry.as_text()}" for entry in entries[:_SHOWN]),
        *([f"  and {more} more"] if more > 0 else []),
    ]
