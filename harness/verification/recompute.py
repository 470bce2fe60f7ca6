"""Every score again, and what the files state about scores beside it.

Episodes are scored by the code that a run and a replay use, one at a time; one that
cannot be scored is named and the others go on. A candidate whose every episode came
out has its aggregate recomputed. One with withheld episodes has its stated aggregate
checked as far as its hash, its order and its bounds go, and each score that could be
recomputed is compared with the hash that the aggregate lists for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.errors import FairtrialError, Violation
from harness.evaluations.record import is_of_another_version
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.manifest import MANIFEST_FILE, REPORT_IDENTITIES
from harness.evidence.plan_file import PlannedCandidate
from harness.evidence.task_row import TaskRow
from harness.run.difference import differences
from harness.run.record import record_beside
from harness.run.report import aggregate_hashes, build_report, cited_taxonomy
from harness.run.score import (
    CandidateTally,
    ScoredCandidate,
    ScoredEpisode,
    readable,
    score_recorded,
)
from harness.run.settings import RESOLVED_FILE
from harness.scoring.aggregate import Aggregate, Counts
from harness.scoring.failures import ERROR_TAXONOMY_HASH
from harness.scoring.reading import ScorableTask
from harness.scoring.score_hashes import NO_SCORE, ScoreHashes
from harness.verification.bundle import AGGREGATES_FILE, RunFiles
from harness.verification.evidence import PartialEvidence
from harness.verification.findings import Findings
from harness.verification.record_check import (
    DECODED_AGAIN,
    check_attempt,
    check_response,
    count_derived,
)
from harness.verification.redaction import WithheldError
from harness.verification.stated import check_bounds, compare_scores, read_aggregates

REPORT_FILE: Final = ARTIFACT_FILES["eval_report"]
RECORD_FILE: Final = ARTIFACT_FILES["eval_record"]
_WHOLE_RUN_ONLY: Final = frozenset(
    {"slices", "served_by", "premature_knowledge", "statistics"}
)
"""Parts of a candidate's report that need every episode."""
_ENGINE: Final = "re2"
_NO_ENGINE: Final = (
    "its tools have a `pattern`, and the engine for it, google-re2, is not installed"
)


class TableRows(Protocol):
    """Whoever compares the task table: rows in order."""

    def take(self, row: TaskRow) -> None:
        """Compare the next row."""

    def end(self) -> tuple[Violation, ...]:
        """Return what differs."""


@dataclass(slots=True)
class _Outcome:
    """One candidate's episodes: what came out and what did not."""

    planned: PlannedCandidate
    tally: CandidateTally
    hashes: ScoreHashes = field(default_factory=ScoreHashes)
    """Score hashes in plan order; `NO_SCORE` where there is no score."""
    counts: Counts = field(default_factory=Counts)
    """Over the episodes that have a score."""
    withheld: int = 0
    failed: int = 0


class Recomputation:
    """One run scored again."""

    def __init__(
        self,
        evidence: PartialEvidence,
        files: RunFiles,
        documents: Mapping[str, Mapping[str, Json]],
        findings: Findings,
        table: TableRows | None,
    ) -> None:
        """Score later; `documents` has the run's JSON objects by file name."""
        self._evidence = evidence
        self._files = files
        self._documents = documents
        self._findings = findings
        self._table = table
        self.whole = True
        """Whether every planned episode was scored."""
        self.without_engine = 0
        """Episodes that need a pattern engine that is not installed."""

    def run(self) -> tuple[ScoredCandidate, ...]:
        """Score and compare; return the candidates whose aggregate is known."""
        outcomes = [
            self._candidate(planned)
            for planned in self._evidence.plan.header.candidates
        ]
        aliases = [each.alias for each in self._evidence.plan.header.candidates]
        stated = read_aggregates(self._files, aliases, self._findings)
        scored: list[ScoredCandidate] = []
        for outcome in outcomes:
            alias = outcome.planned.alias
            found = self._aggregate(outcome, stated.get(alias))
            if outcome.withheld or outcome.failed:
                self.whole = False
            if found is not None:
                scored.append(found)
        if len(scored) == len(outcomes):
            self._compare_statements(tuple(scored), whole=self.whole)
        elif outcomes:
            self._findings.leave(REPORT_FILE, "a candidate's aggregate is not known")
        self._compare_table(whole=self.whole)
        if self._evidence.candidate_log.withheld_attempts:
            self._findings.leave(
                "answers against their raw responses",
                "the raw responses were withheld",
                self._evidence.candidate_log.withheld_attempts,
            )
        return tuple(scored)

    def _candidate(self, planned: PlannedCandidate) -> _Outcome:
        outcome = _Outcome(planned, CandidateTally(self._evidence, planned))
        settings = self._evidence.config.endpoint(planned.alias)
        endpoint = Endpoint(**settings)
        trials = self._evidence.plan.header.trials
        for task_id in self._evidence.task_ids_of(planned):
            for scored in self._episodes(outcome, endpoint, task_id, trials):
                own = NO_SCORE if scored is None else scored.row.score_hash
                outcome.hashes.append(own)
                if scored is not None:
                    self._take(outcome, scored)
        return outcome

    def _episodes(
        self, outcome: _Outcome, endpoint: Endpoint, task_id: str, trials: int
    ) -> Iterator[ScoredEpisode | None]:
        """Yield each trial of a task; None for one that has no score."""
        task: ScorableTask | None = None
        for trial in range(trials):
            scored = None
            try:
                if task is None:
                    with readable(f"eval_plan.jsonl, task {task_id}"):
                        task = ScorableTask.of(self._evidence.plan.task(task_id))
                scored = score_recorded(self._evidence, endpoint, task, trial)
            except WithheldError:
                outcome.withheld += 1
            except FairtrialError as error:
                outcome.failed += 1
                self._findings.add(error.violations)
            except ModuleNotFoundError as error:
                if error.name != _ENGINE:
                    raise
                outcome.failed += 1
                self.without_engine += 1
                self._findings.leave(f"episodes of {endpoint.alias}", _NO_ENGINE)
            yield scored

    def _take(self, outcome: _Outcome, scored: ScoredEpisode) -> None:
        self._findings.count("episodes scored again")
        if self._files.withheld_rows:
            outcome.counts.add(scored.score)
        if not outcome.withheld and not outcome.failed:
            outcome.tally.add(scored)
            if self._table is not None:
                with self._findings.refusals():
                    self._table.take(scored.row)
        recorded = scored.recorded
        alias = outcome.planned.alias
        where = (
            f"candidate {alias}, task {scored.row.task_id}, trial {scored.row.trial}"
        )
        echo = bool(self._evidence.config.endpoint(alias)["echo_reasoning"])
        traffic = self._evidence.candidate_log
        for turn, (answer, attempts) in enumerate(
            zip(recorded.outcomes, recorded.attempts_by_turn, strict=True)
        ):
            place = f"{where}, turn {turn}"
            for attempt in attempts:
                check_attempt(
                    attempt, f"{place}, attempt {attempt.attempt_index}", self._findings
                )
            if traffic.is_derived(answer.request_hash):
                self._findings.count(DECODED_AGAIN)
            elif attempts or not traffic.withheld_attempts:
                check_response(
                    answer, attempts, place, self._findings, echo_reasoning=echo
                )
        count_derived(recorded.episode, self._findings)

    def _aggregate(
        self, outcome: _Outcome, stated: Aggregate | None
    ) -> ScoredCandidate | None:
        """Return a candidate's aggregate, recomputed or as far as it can be trusted."""
        alias = outcome.planned.alias
        if stated is not None:
            compare_scores(
                stated,
                self._evidence.task_ids_of(outcome.planned),
                self._evidence.plan.header.trials,
                outcome.hashes,
                self._findings,
            )
        if outcome.failed:
            return None
        if not outcome.withheld:
            scored: ScoredCandidate | None = None
            with self._findings.refusals():
                scored = outcome.tally.result()
            self._findings.count("aggregates recomputed")
            if scored is None or stated is None:
                return scored
            if scored.aggregate != stated:
                ours = scored.aggregate.semantic_payload()
                theirs = stated.semantic_payload()
                where = f"{AGGREGATES_FILE}, candidate {alias}"
                self._findings.add(differences(where, ours, theirs))
            return scored
        self._findings.leave(
            f"the aggregate of {alias}",
            f"{outcome.withheld} of {len(outcome.hashes)} episodes were withheld",
        )
        if stated is None:
            return None
        with self._findings.refusals(), readable(AGGREGATES_FILE):
            check_bounds(stated, outcome.counts, outcome.withheld, self._findings)
        return ScoredCandidate(stated, (), ())

    def _compare_statements(
        self, scored: tuple[ScoredCandidate, ...], *, whole: bool
    ) -> None:
        """Compare report and manifest with what came out."""
        header = self._evidence.plan.header
        manifest = self._documents.get(MANIFEST_FILE, {})
        taxonomy = cited_taxonomy(manifest)
        try:
            with readable("eval_plan.jsonl, record 1"):
                report = build_report(
                    header,
                    scored,
                    max_stop_share=self._evidence.config.max_stop_share,
                    taxonomy_hash=taxonomy,
                )
        except FairtrialError as error:
            self._findings.add(error.violations)
            return
        if taxonomy != ERROR_TAXONOMY_HASH:
            self._findings.leave(
                "error_taxonomy_hash",
                "the run was written by a version with another table of causes; the "
                "hash was compared between its files",
            )
        stated = dict(self._documents.get(REPORT_FILE, {}))
        if not whole:
            _leave_out_counts(report, stated)
            self._findings.leave(
                f"{REPORT_FILE}, counts by kind of task and by server",
                "they need every episode",
            )
        self._compare_record()
        self._findings.count("reports recomputed")
        self._findings.add(differences(REPORT_FILE, report, stated))
        shared = {*REPORT_IDENTITIES, "publication_allowed", "non_publication_reasons"}
        self._findings.add(
            differences(
                MANIFEST_FILE,
                {name: report[name] for name in sorted(shared)},
                {name: manifest.get(name) for name in sorted(shared)},
            )
        )
        self._findings.add(
            differences(
                f"{MANIFEST_FILE}, candidate_aggregates",
                aggregate_hashes(scored),
                manifest.get("candidate_aggregates"),
            )
        )

    def _compare_record(self) -> None:
        """Compare the evaluation record with what its config and report give."""
        stated = self._documents.get(RECORD_FILE, {})
        if is_of_another_version(stated):
            self._findings.leave(
                RECORD_FILE, "another version wrote its form; its hash was checked"
            )
            return
        with self._findings.refusals(), readable(RECORD_FILE):
            record = record_beside(
                self._evidence.plan.header,
                self._documents[RESOLVED_FILE]["semantic_payload"],
                self._documents[REPORT_FILE],
                self._documents[MANIFEST_FILE],
            )
            self._findings.count("evaluation records recomputed")
            self._findings.add(differences(RECORD_FILE, record, stated))

    def _compare_table(self, *, whole: bool) -> None:
        if self._table is None:
            return
        if not whole or self._evidence.candidate_log.withheld_attempts:
            self._findings.leave(
                ARTIFACT_FILES["eval_task_results"], "rows need every episode whole"
            )
            return
        with self._findings.refusals():
            self._findings.add(self._table.end())
            self._findings.count("task tables compared row by row")


def _leave_out_counts(report: dict[str, Json], stated: dict[str, Json]) -> None:
    """Drop the parts of a report that only a whole run gives."""
    for payload in (report, stated):
        candidates = payload.get("candidates")
        if isinstance(candidates, list):
            payload["candidates"] = [
                {k: v for k, v in each.items() if k not in _WHOLE_RUN_ONLY}
                if isinstance(each, dict)
                else each
                for each in candidates
            ]
