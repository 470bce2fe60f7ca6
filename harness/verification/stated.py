"""`aggregates.jsonl` of a bundle: each candidate's aggregate, in full.

An aggregate lists the hash of every score and has a hash of its own, which report and
manifest repeat. So a score that can be recomputed is compared with the run's even
where another one was withheld and the aggregate cannot be formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harness.canonical import Json, content_hash
from harness.errors import FairtrialError
from harness.scoring.aggregate import (
    HASHES_NAME,
    Aggregate,
    Companions,
    Counts,
    GateCount,
    LedgerEntry,
    without_stops,
)
from harness.scoring.metric import NO_APPLICABLE_TASK, rate
from harness.scoring.metrics import TASK_SUCCESS_RATE
from harness.scoring.score_hashes import NO_SCORE, ScoreHashes
from harness.stats.bounds import success_bounds
from harness.strict_json import StrictJsonError, decode_document
from harness.verification.bundle import AGGREGATES_FILE, RunFiles
from harness.verification.findings import Findings

_OUTCOMES: Final = ("passed", "failed", "not_applicable", "evidence_missing")


def aggregate_lines(aggregates: Iterable[Aggregate]) -> Iterator[bytes]:
    """Yield the file's text in pieces; a line for each aggregate."""
    for aggregate in aggregates:
        yield from aggregate.semantic_pieces()
        yield b"\n"


def read_aggregates(
    files: RunFiles, aliases: Sequence[str], findings: Findings
) -> dict[str, Aggregate]:
    """Return the stated aggregates by alias; {} for a run folder.

    There is one for each of `aliases`, in the order of the plan.
    """
    window = files.windows.get(AGGREGATES_FILE)
    if window is None:
        return {}
    stated: dict[str, Aggregate] = {}
    found: list[str] = []
    with window.open() as stream:
        for number, line in enumerate(stream, 1):
            where = f"{AGGREGATES_FILE}, line {number}"
            try:
                aggregate = _read(line, where)
            except (StrictJsonError, FairtrialError, ValueError) as error:
                findings.differs(where, "it is no aggregate", "one", str(error)[:200])
                continue
            if not _is_text(line, aggregate_lines([aggregate])):
                findings.differs(where, "it is not the one text of it", "it", "another")
            stated[aggregate.candidate_alias] = aggregate
            found.append(aggregate.candidate_alias)
    findings.equal("lists of aggregates", AGGREGATES_FILE, list(aliases), found)
    return stated


def _read(line: bytes, where: str) -> Aggregate:
    """Read one aggregate; its score hashes as bytes, as long as they are hashes."""
    before, name, after = line.partition(HASHES_NAME)
    listed, _, rest = after.partition(b"]")
    hashes = ScoreHashes.from_text(listed.decode("ascii", "replace"))
    if not name or hashes is None:
        return Aggregate.from_payload(decode_document(line), where)
    all_but = decode_document(b"%b%b]%b" % (before, name, rest))
    return Aggregate.from_payload(all_but, where).but(task_score_hashes=hashes)


def _is_text(text: bytes, pieces: Iterable[bytes]) -> bool:
    at = 0
    for piece in pieces:
        if not text.startswith(piece, at):
            return False
        at += len(piece)
    return at == len(text)


def compare_scores(
    stated: Aggregate,
    task_ids: Sequence[str],
    trials: int,
    hashes: Sequence[str],
    findings: Findings,
) -> None:
    """Compare each recomputed score with the hash that the aggregate lists for it.

    `hashes` are in plan order; `NO_SCORE` where a score could not be recomputed.
    """
    where = f"{AGGREGATES_FILE}, candidate {stated.candidate_alias}"
    findings.equal(
        "task lists", f"{where}, task_ids", list(task_ids), list(stated.task_ids)
    )
    findings.equal(
        "task lists",
        f"{where}, task_score_hashes",
        len(hashes),
        len(stated.task_score_hashes),
    )
    for position, (ours, theirs) in enumerate(
        zip(hashes, stated.task_score_hashes, strict=False)
    ):
        if ours == NO_SCORE:
            continue
        findings.count("score hashes compared")
        if ours != theirs:
            findings.differs(
                f"{where}, task {task_ids[position // trials]}, "
                f"trial {position % trials}",
                "the score is not what the evidence gives",
                ours,
                theirs,
            )


def check_bounds(
    stated: Aggregate, known: Counts, withheld: int, findings: Findings
) -> None:
    """Refuse counts that contradict each other or the episodes that are whole.

    `known` are the counts over those; each withheld episode adds one at the most to
    any count, and to both parts of a metric as much as it has calls or checks.
    """
    where = f"{AGGREGATES_FILE}, candidate {stated.candidate_alias}"
    for name, expected, actual in _derived(stated):
        findings.equal("counts that follow", f"{where}, {name}", expected, actual)
    ours = _counted(known.companions(), known.gates(), known.ledger())
    ours |= {"successful_tasks": known.successes, "non_candidate_stops": known.stops}
    theirs = _counted(stated.companions, stated.gates, stated.ledger)
    for name in ("successful_tasks", "non_candidate_stops"):
        theirs[name] = getattr(stated, name)
    del ours["companions.planned"], theirs["companions.planned"]
    for name in sorted(ours.keys() | theirs.keys()):
        least = ours.get(name, 0)
        most = least + withheld
        _within(f"{where}, {name}", least, most, theirs.get(name, 0), findings)
    totals = {each.metric: each for each in stated.metrics}
    for metric in known.metrics():
        total = totals.get(metric.metric)
        hits = 0 if total is None else total.numerator
        misses = 0 if total is None else total.denominator - total.numerator
        place = f"{where}, {metric.metric}"
        _within(f"{place}, hits", metric.numerator, None, hits, findings)
        missed = metric.denominator - metric.numerator
        _within(f"{place}, misses", missed, None, misses, findings)


def _within(
    where: str, least: int, most: int | None, actual: int, findings: Findings
) -> None:
    findings.count("counts within their bounds")
    if actual < least or (most is not None and actual > most):
        findings.differs(
            where,
            "the withheld episodes cannot account for the count",
            f"at least {least}" if most is None else f"{least} to {most}",
            str(actual),
        )


def _counted(
    companions: Companions, gates: Iterable[GateCount], ledger: Iterable[LedgerEntry]
) -> dict[str, int]:
    """Return by name what an episode adds one to, or nothing."""
    return {
        **{f"companions.{k}": n for k, n in companions.semantic_payload().items()},
        **{
            f"gates.{each.gate}.{outcome}": getattr(each, outcome)
            for each in gates
            for outcome in _OUTCOMES
        },
        **{
            f"ledger.{each.owner}.{each.cause}.{each.is_stop}": each.count
            for each in ledger
        },
    }


def _derived(stated: Aggregate) -> Iterator[tuple[str, Json, Json]]:
    """Yield what follows within an aggregate: name, as it follows, as it stands."""
    planned, successes = stated.task_count, stated.successful_tasks
    stops = stated.non_candidate_stops
    metrics = {each.metric: each for each in stated.metrics}
    success = rate(TASK_SUCCESS_RATE, successes, planned, NO_APPLICABLE_TASK)
    judged = without_stops(successes, stops, planned)
    for metric in (success, judged):
        found = metrics.get(metric.metric)
        actual = None if found is None else found.semantic_payload()
        yield metric.metric, metric.semantic_payload(), actual
    bounds = success_bounds(successes, stops, planned)
    yield (
        "success_bounds",
        bounds.semantic_payload(),
        stated.success_bounds.semantic_payload(),
    )
    yield "task_count", len(stated.task_ids) * stated.trials, planned
    yield "task_ids_hash", content_hash(list(stated.task_ids)), stated.task_ids_hash
    yield "companions.planned", planned, stated.companions.planned
    yield "companions.stops", stops, stated.companions.stops
    blamed = sum(each.count for each in stated.ledger)
    yield "episodes in the ledger", planned - successes, blamed
    yield "stops in the ledger", stops, sum(stated.stops_by_cause.values())
    for each in stated.gates:
        total = sum(getattr(each, outcome) for outcome in _OUTCOMES)
        yield f"episodes of gate {each.gate}", planned, total
