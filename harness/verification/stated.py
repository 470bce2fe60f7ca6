"""`aggregates.jsonl` of a bundle: each candidate's aggregate, in full.

An aggregate lists the hash of every score and has a hash of its own, which report and
manifest repeat. So a score that can be recomputed is compared with the run's even
where another one was withheld and the aggregate cannot be formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.errors import FairtrialError
from harness.scoring.aggregate import HASHES_NAME, Aggregate
from harness.scoring.score_hashes import NO_SCORE, ScoreHashes
from harness.strict_json import StrictJsonError, decode_document
from harness.verification.bundle import AGGREGATES_FILE, RunFiles
from harness.verification.findings import Findings


def aggregate_lines(aggregates: Iterable[Aggregate]) -> Iterator[bytes]:
    """Yield the file's text in pieces; a line for each aggregate."""
    for aggregate in aggregates:
        yield from aggregate.semantic_pieces()
        yield b"\n"


def read_aggregates(files: RunFiles, findings: Findings) -> dict[str, Aggregate]:
    """Return the stated aggregates by alias; {} for a run folder."""
    window = files.windows.get(AGGREGATES_FILE)
    if window is None:
        return {}
    stated: dict[str, Aggregate] = {}
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
    stated: Aggregate, withheld: int, known: Mapping[str, int], findings: Findings
) -> None:
    """Refuse counts that the withheld episodes cannot account for.

    `known` has the counts over the recomputed episodes by field of the aggregate.
    """
    for name, count in known.items():
        total = getattr(stated, name)
        findings.count("counts within their bounds")
        if not count <= total <= count + withheld:
            findings.differs(
                f"{AGGREGATES_FILE}, candidate {stated.candidate_alias}, {name}",
                "the withheld episodes cannot account for the count",
                f"{count} to {count + withheld}",
                str(total),
            )
