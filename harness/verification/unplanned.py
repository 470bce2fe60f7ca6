"""Records of conversations that the plan does not have.

A run asks what its plan has and nothing else, whoever resumes it and however often.
So what no score needed has to be work of a planned episode all the same: an attempt
that was superseded, a request whose answer a power cut took.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.canonical import Json
from harness.errors import Violation
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.log_line import Entry
from harness.run.score import readable
from harness.verification.evidence import PartialEvidence
from harness.verification.findings import RECOVERY, Findings
from harness.verification.survey import SurveyedLog

_CODES: Final = {
    "candidate_io_cache": "eval_request_unaccounted",
    "tool_trace_cache": "eval_tool_trace_cache_invalid",
}


class UnplannedRecords:
    """Looks for them, after everything that the plan has was read."""

    def __init__(self, evidence: PartialEvidence, *, whole: bool) -> None:
        """`whole` tells whether every planned episode was found and scored."""
        header = evidence.plan.header
        self._evidence = evidence
        self._whole = whole
        self._trials = header.trials
        self._tasks = {
            planned.alias: frozenset(evidence.task_ids_of(planned))
            for planned in header.candidates
        }

    def check(self, name: str, log: SurveyedLog, findings: Findings) -> None:
        """Report what no planned episode of a log accounts for, a key at a time."""
        code = _CODES.get(name)
        if code is None:
            return
        unused = dict.fromkeys(_first_of_unused(log), True)
        if name == "tool_trace_cache":
            unused = dict.fromkeys(log.unused(("request",)), False) | unused
        for record, is_unused in unused.items():
            where = f"{log.format.file_name}, record {record + 1}"
            with findings.refusals(), readable(where):
                entry = log.entry(record)
                if entry.is_withheld:
                    continue
                named = _episode_of(entry)
                if self._has(named, entry, is_unused=is_unused):
                    continue
                problem = "no planned episode asked it"
                expected = "work of a planned episode"
                found = Violation(code, where, problem, expected, str(named), RECOVERY)
                findings.add([found])

    def _has(self, named: dict[str, Json], entry: Entry, *, is_unused: bool) -> bool:
        """Tell whether the plan has an episode that such a record may be of."""
        task_id, trial = named["task_id"], named["trial"]
        planned: bool = (
            task_id in self._tasks.get(named["candidate_alias"], ())
            and type(trial) is int
            and 0 <= trial < self._trials
        )
        if entry.log is CANDIDATE_LOG:
            turns = self._evidence.plan.task(task_id).script.turns if planned else ()
            return named["turn_index"] in range(len(turns))
        # Every planned episode has its end, so another key is of none.
        return planned and not (is_unused and self._whole)


def _first_of_unused(log: SurveyedLog) -> Iterator[int]:
    """Yield the first sound record of each key of which nothing was read back."""
    for chain in log.index.chains():
        records = [*chain]
        if not any(map(log.was_used, records)):
            record = records[-1]
            if not log.is_damaged(record):
                yield record


def _episode_of(entry: Entry) -> dict[str, Json]:
    """Return which episode a record says that it is of."""
    if entry.log is CANDIDATE_LOG:
        request = entry.member("request")
        names = ("task_id", "trial", "turn_index")
        return {
            "candidate_alias": request["head"]["candidate_alias"],
            **{name: request[name] for name in names},
        }
    begins = entry.record_type == "request"
    episode = entry.member("request" if begins else "episode")
    return {n: episode[n] for n in ("candidate_alias", "task_id", "trial")}
