"""The sensitivity of a run as text: scores with places, and which tasks flip."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from harness.canonical import Json
from harness.report.terminal import table, wrap
from harness.visible_text import visible

LISTED: Final = 6
"""Tasks that a line names; JSON has them all."""


def render_sensitivity(payload: Mapping[str, Json], *, width: int = 100) -> str:
    """Return the text of a `sensitivity` payload, ending with a newline."""
    sections = [
        f"Sensitivity of {visible(payload['eval_run_id'])} to its scoring rules. "
        "Diagnostic: none of these is the run's score but `typed`.",
        _scores(payload, width),
        *_flips(payload, width),
        _rules(payload, width),
    ]
    return "\n\n".join(sections) + "\n"


def _scores(payload: Mapping[str, Json], width: int) -> str:
    candidates = payload["candidates"]
    rows = [
        (policy, *(_cell(candidate, index) for candidate in candidates))
        for index, policy in enumerate(payload["policies"])
    ]
    headers = ("policy", *(candidate["alias"] for candidate in candidates))
    planned = ", ".join(
        f"{visible(candidate['alias'])} {candidate['planned']}"
        for candidate in candidates
    )
    title = "\n".join(
        wrap(
            f"Successes and place (#) of planned episodes ({planned}); `a to b` where "
            "the evidence ends before the verdict",
            width,
        )
    )
    return f"{title}\n" + table(headers, rows, width=width, indent=2)


def _cell(candidate: Mapping[str, Json], index: int) -> str:
    score = candidate["policies"][index]
    lowest, highest = score["success"], score["success"] + score["unknown"]
    place = score["place"]
    return f"{_range(lowest, highest)} #{_range(place['best'], place['worst'])}"


def _range(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest} to {highest}"


def _flips(payload: Mapping[str, Json], width: int) -> Iterator[str]:
    certain: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    possible: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for flip in payload["flips"]:
        key = (
            flip["policy"],
            flip["candidate_alias"],
            f"{flip['recorded']}->{flip['verdict']}",
            flip["reason_code"],
        )
        groups = possible if flip["verdict"] == "unknown" else certain
        trial = f":{flip['trial']}" if payload["trials"] > 1 else ""
        groups[key].append(flip["task_id"] + trial)
    for title, groups in (("Flips", certain), ("May flip", possible)):
        if groups:
            lines = [line for key in groups for line in _group(key, groups[key], width)]
            yield "\n".join([title, *lines])
    if not certain:
        yield "No verdict is certain to flip."


def _group(key: tuple[str, ...], tasks: list[str], width: int) -> Iterator[str]:
    policy, alias, change, reason = key
    yield f"  {policy}, {visible(alias)}: {change}, {len(tasks)} ({reason})"
    for line in wrap(_listed(tasks), max(width - 6, 8)):
        yield f"      {line}"


def _listed(tasks: list[str]) -> str:
    more = f" and {len(tasks) - LISTED} more" if len(tasks) > LISTED else ""
    return " ".join(map(visible, tasks[:LISTED])) + more


def _rules(payload: Mapping[str, Json], width: int) -> str:
    rows = list(payload["policies"].items())
    return "Policies\n" + table(("policy", "rule"), rows, width=width, indent=2)
