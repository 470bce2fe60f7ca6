"""Many stored contamination reports, and a table over all of them.

Folders are read one at a time and each leaves one line in a file of its own; DuckDB
answers what is asked across them. Memory holds one report, never all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

from harness.audit.exposed_rows import database, quoted
from harness.audit.stored_report import audit_report
from harness.canonical import Json
from harness.errors import FairtrialError
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import ARTIFACT_FILES

MOST_PROBLEMS: Final = 20
"""Problems that are kept of one run; all are counted."""
_MOST_COUNTED: Final = 1 << 53
_PREMATURE: Final = ("values", "appeared", "decoys", "decoys_appeared")
_COLUMNS: Final = """{
    run: 'VARCHAR', eval_run_id: 'VARCHAR', status: 'VARCHAR', follows: 'BOOLEAN',
    publication_allowed: 'BOOLEAN', problem_count: 'BIGINT',
    problems: 'STRUCT("where" VARCHAR, problem VARCHAR, expected VARCHAR,
        actual VARCHAR)[]',
    candidates: 'STRUCT(alias VARCHAR, canonical_id VARCHAR,
        comparisons STRUCT("role" VARCHAR, "scope" VARCHAR, verdict VARCHAR,
            exposed_model VARCHAR, decided_by VARCHAR, reason VARCHAR,
            settled_by VARCHAR, task_ids STRUCT("count" BIGINT, hash VARCHAR))[],
        premature_knowledge STRUCT("values" BIGINT, appeared BIGINT, decoys BIGINT,
            decoys_appeared BIGINT))[]'
}"""
_VIEWS: Final = """
    CREATE TEMP VIEW runs AS SELECT * FROM read_json(
        '{file}', format = 'newline_delimited', columns = {columns},
        maximum_object_size = 67108864);
    CREATE TEMP VIEW claims AS
        SELECT run, follows, unnest(candidates) AS candidate FROM runs;
    CREATE TEMP VIEW pairs AS
        SELECT run, candidate.alias AS alias, candidate.canonical_id AS canonical_id,
            unnest(candidate.comparisons) AS pair
        FROM claims;
"""
_UNRESOLVED: Final = """
    SELECT canonical_id, pair.exposed_model, pair.decided_by, pair.settled_by,
        count(DISTINCT run), min(run)
    FROM pairs WHERE pair.verdict = 'unknown'
    GROUP BY ALL ORDER BY 5 DESC, 1, 2, 3, 4 LIMIT {limit}
"""
_CANDIDATES: Final = """
    WITH judged AS (
        SELECT run, alias, bool_or(pair.verdict = 'match') AS exposed,
            bool_or(pair.verdict = 'unknown') AS unresolved
        FROM pairs GROUP BY run, alias)
    SELECT candidate.canonical_id, count(DISTINCT claims.run),
        count(DISTINCT claims.run) FILTER (exposed),
        count(DISTINCT claims.run) FILTER (unresolved),
        sum(candidate.premature_knowledge."values")::BIGINT,
        sum(candidate.premature_knowledge.appeared)::BIGINT,
        sum(candidate.premature_knowledge.decoys)::BIGINT,
        sum(candidate.premature_knowledge.decoys_appeared)::BIGINT
    FROM claims LEFT JOIN judged
        ON claims.run = judged.run AND candidate.alias = judged.alias
    GROUP BY candidate.canonical_id ORDER BY 1 LIMIT {limit}
"""
_TOTALS: Final = """
    SELECT count(*), count(*) FILTER (follows), count(*) FILTER (NOT follows),
        count(*) FILTER (status = 'refused'),
        (SELECT count(*) FROM pairs WHERE pair.verdict = 'match'),
        (SELECT count(*) FROM pairs WHERE pair.verdict = 'unknown'),
        (SELECT count(*) FROM pairs WHERE pair.verdict = 'different')
    FROM runs
"""
_TOTAL_NAMES: Final = (
    "runs",
    "follow",
    "do_not_follow",
    "refused",
    "match",
    "unknown",
    "different",
)


def audit_run(folder: Path) -> dict[str, Json]:
    """Return what one run folder comes to, as a JSON payload."""
    found = audit_report(folder)
    report = _eval_report(folder)
    early = dict(_premature(report))
    return {
        "run": str(folder),
        "eval_run_id": report.get("eval_run_id"),
        "status": found.status,
        "follows": not found.problems,
        "publication_allowed": found.publication_allowed,
        "problem_count": len(found.problems),
        "problems": [
            {
                "where": each.where,
                "problem": each.problem,
                "expected": each.expected,
                "actual": each.actual,
            }
            for each in found.problems[:MOST_PROBLEMS]
        ],
        "candidates": [
            {**each, "premature_knowledge": early.get(each["alias"])}
            for each in found.candidates
        ],
    }


def _premature(report: dict[str, Any]) -> Iterator[tuple[str, Json]]:
    """Yield what each candidate knew too early, where a report counts it."""
    candidates = report.get("candidates")
    for each in candidates if isinstance(candidates, list) else ():
        found = each.get("premature_knowledge") if isinstance(each, dict) else None
        if not isinstance(found, dict) or not isinstance(each.get("alias"), str):
            continue
        parts = found.get("by_template")
        if isinstance(parts, list) and all(map(_counts, (found, *parts))):
            yield each["alias"], found


def _counts(found: Json) -> bool:
    """Tell whether something has all the counts, each of which a table can hold."""
    return isinstance(found, dict) and all(
        type(found.get(name)) is int and 0 <= found[name] < _MOST_COUNTED
        for name in _PREMATURE
    )


def _eval_report(folder: Path) -> dict[str, Any]:
    """Return a finished run's report; {} where there is none that can be read.

    Whether it follows from its evidence is what `replay` says, not the audit.
    """
    file = folder / ARTIFACT_FILES["eval_report"]
    if not file.exists():
        return {}
    try:
        report = read_json_artifact(file)
    except FairtrialError:
        return {}
    return report if isinstance(report, dict) else {}


@dataclass(frozen=True, slots=True)
class AuditedRuns:
    """All audited runs, for questions; open as long as `audit_runs` is."""

    connection: Any
    file: Path

    @classmethod
    def of(cls, connection: Any, file: Path) -> Self:
        """Look at a file of lines that `audit_run` gave."""
        views = _VIEWS.format(file=quoted(file), columns=_COLUMNS)
        for statement in views.strip().rstrip(";").split(";"):
            connection.execute(statement)
        return cls(connection, file)

    def runs(self) -> Iterator[dict[str, Json]]:
        """Yield each run's payload in the order of the folders."""
        with self.file.open(encoding="utf-8") as lines:
            for line in lines:
                run: dict[str, Json] = json.loads(line)
                yield run

    def totals(self) -> dict[str, int]:
        """Return counts of runs and of comparisons by verdict."""
        counts = self.connection.execute(_TOTALS).fetchone()
        return dict(zip(_TOTAL_NAMES, map(int, counts), strict=True))

    def unresolved_claims(self, limit: int) -> list[dict[str, Json]]:
        """Return what unresolved comparisons rest on, most runs first."""
        names = (
            "canonical_id",
            "exposed_model",
            "decided_by",
            "settled_by",
            "runs",
            "first_run",
        )
        return self._table(_UNRESOLVED, names, limit)

    def candidates(self, limit: int) -> list[dict[str, Json]]:
        """Return one line for each model over all runs."""
        names = ("canonical_id", "runs", "exposed", "unresolved", *_PREMATURE)
        return self._table(_CANDIDATES, names, limit)

    def _table(
        self, query: str, names: tuple[str, ...], limit: int
    ) -> list[dict[str, Json]]:
        rows = self.connection.execute(query.format(limit=limit)).fetchall()
        return [dict(zip(names, row, strict=True)) for row in rows]


@contextmanager
def audit_runs(folders: Iterable[Path]) -> Iterator[AuditedRuns]:
    """Audit folders one after the other and open the result for questions."""
    with TemporaryDirectory(prefix="fairtrial-audit-") as scratch:
        file = Path(scratch) / "runs.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            for folder in folders:
                run = audit_run(folder)
                print(json.dumps(run, ensure_ascii=True, sort_keys=True), file=lines)
        with database() as connection:
            yield AuditedRuns.of(connection, file)
