"""What `bundle.json` says, held to the form of a bundle and to its rows.

Its own hash shows that the file is whole, and nothing of what it says. So its members
are those of a run in their one order, rows may be withheld from logs alone, and what
was withheld is what it says was: every row of a kind whose word it states, and no
row beside those but of the tasks that it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from harness.errors import UsageError
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.manifest import EVIDENCE_FILES, MANIFEST_FILE
from harness.evidence.plan_file import PLAN_FILE, task_key
from harness.verification.bundle import AGGREGATES_FILE, HEADER_FILE, BundleHeader
from harness.verification.findings import Findings
from harness.verification.redaction import WORDS, Redaction
from harness.verification.survey import SurveyedLog

MEMBERS: Final = (*ARTIFACT_FILES.values(), MANIFEST_FILE, AGGREGATES_FILE)
"""Every file that a bundle may hold, in their order."""
_LOGS: Final = frozenset(log.file_name for log in EVIDENCE_FILES.values())


def check_contents(header: BundleHeader, findings: Findings) -> None:
    """Hold members and statements to their form."""
    members = [member.file for member in header.members]
    known = [file for file in MEMBERS if file in {*members, *MEMBERS[-2:]}]
    _equal(findings, "members", known, members)
    rows = {
        file: number
        for file, number in header.withheld_rows.items()
        if file in _LOGS and number > 0
    }
    _equal(findings, "withheld_rows", rows, dict(header.withheld_rows))
    redaction = _redaction(header)
    stated = None if redaction is None else redaction.as_list()
    _equal(findings, "redaction", stated, list(header.redaction))


def check_rows(
    header: BundleHeader, logs: Mapping[str, SurveyedLog], findings: Findings
) -> None:
    """Compare the rows that are digests with what is said to be withheld."""
    redaction = _redaction(header)
    if redaction is None:
        return
    covered = frozenset().union(*(WORDS[word] for word in redaction.words))
    for log in logs.values():
        withheld, rows = _kinds(log)
        for kind, number in sorted(rows.items()):
            place = f"{log.format.file_name}, {kind} rows"
            if (log.format.file_name, kind) in covered:
                _equal(findings, f"redaction of {place}", number, withheld[kind])
            elif not redaction.task_ids:
                _equal(findings, f"redaction of {place}", 0, withheld[kind])
            elif log.format is PLAN_FILE and kind == "task":
                _check_tasks(log, redaction, findings)


def _kinds(log: SurveyedLog) -> tuple[Counter[str], Counter[str]]:
    """Count a log's rows by kind: those that are digests, and all that are sound."""
    names = dict(enumerate(log.format.record_types))
    kind_of = log.index.record_type
    withheld = Counter(names[kind_of(record)] for record in log.withheld)
    rows = Counter(map(kind_of, range(len(log))))
    return withheld, Counter({n: rows[kind] for kind, n in names.items() if rows[kind]})


def _check_tasks(log: SurveyedLog, redaction: Redaction, findings: Findings) -> None:
    keys = sorted(task_key(task_id) for task_id in redaction.task_ids)
    found = sorted(log.entry(record).key for record in log.withheld)
    _equal(findings, "redaction of tasks", keys, found)


def _redaction(header: BundleHeader) -> Redaction | None:
    try:
        return Redaction.of(header.redaction)
    except UsageError:
        return None


def _equal(findings: Findings, what: str, expected: object, actual: object) -> None:
    where = f"{HEADER_FILE}, {what}"
    findings.equal("statements of a bundle", where, expected, actual)
