"""The evidence of one run opened for verification: all of it, damage included.

What a run's scoring reads is here in the same shape, so that a verification scores
by the same code. Damage of a log is reported when it is surveyed; what rests on a
damaged or missing record is refused when it is asked for. Raw bodies that were
withheld leave an episode without its exchanges, which no verdict needs.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Final, Self

from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.errors import FairtrialError
from harness.evidence import episode_log, plan_file, traffic_order
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.episode_log import EPISODE_LOG, EpisodeRecords
from harness.evidence.log_line import Entry, LogFormat
from harness.evidence.log_reader import LogReader
from harness.evidence.plan_file import PLAN_FILE, PlanFile
from harness.run.recorded import Evidence, RecordedEpisode
from harness.run.settings import RunSettings
from harness.scoring.reading import ScorableTask
from harness.verification.bundle import RunFiles
from harness.verification.derived import DerivedRecords
from harness.verification.findings import Findings
from harness.verification.record_check import check_request
from harness.verification.redaction import WithheldError
from harness.verification.survey import SurveyedLog, Visit, survey_log

LOGS: Final[dict[str, LogFormat]] = {
    "eval_plan": PLAN_FILE,
    "candidate_io_cache": CANDIDATE_LOG,
    "tool_trace_cache": EPISODE_LOG,
}
"""The evidence files by the name that a manifest gives them."""


class PartialEvidence(Evidence):
    """Evidence of which some rows may be digests."""

    candidate_log: DerivedRecords

    def __init__(
        self,
        config: RunSettings,
        plan: PlanFile,
        candidates: DerivedRecords,
        episodes: EpisodeRecords | None,
    ) -> None:
        self.config = config
        self.plan = plan
        self.candidate_log = candidates
        self.episode_log = episodes

    async def episode(
        self, endpoint: Endpoint, task: ScorableTask, trial: int
    ) -> RecordedEpisode:
        """Return one recorded episode; raise EvidenceError if it is not there."""
        self.candidate_log.begin(echo_reasoning=endpoint.echo_reasoning)
        return await super().episode(endpoint, task, trial)


class SurveyedEvidence:
    """The surveyed logs of one run; a context manager that closes them."""

    def __init__(self, files: RunFiles, findings: Findings) -> None:
        self._files = files
        self._findings = findings
        self._stack = ExitStack()
        self.logs: dict[str, SurveyedLog] = {}
        """Those that are there, by the name that a manifest gives them."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name, log in LOGS.items():
                window = self._files.windows.get(log.file_name)
                if window is not None:
                    visit = _visit(name, self._findings)
                    opened = survey_log(window, log, self._findings, visit)
                    self.logs[name] = stack.enter_context(opened)
                    self._findings.count("records hashed", len(opened))
                    self._check_withheld(log.file_name, opened)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _check_withheld(self, file_name: str, log: SurveyedLog) -> None:
        stated = self._files.withheld_rows.get(file_name, 0)
        if len(log.withheld) != stated:
            self._findings.differs(
                file_name,
                "rows are digests that the bundle does not own up to",
                f"{stated} withheld rows",
                f"{len(log.withheld)} withheld rows",
            )

    def evidence(self, resolved: Json) -> PartialEvidence | None:
        """Return what scoring needs; None, and why among the findings, if it lacks."""
        settings = plan = None
        with self._findings.refusals():
            settings = RunSettings.from_resolved(resolved)
        if "eval_plan" in self.logs:
            try:
                plan = PlanFile(self.logs["eval_plan"])
            except WithheldError:
                self._findings.leave("every score", "the plan was withheld")
            except FairtrialError as error:
                self._findings.add(error.violations)
        requests = self.logs.get("candidate_io_cache")
        if settings is None or plan is None or requests is None:
            return None
        episodes = self.logs.get("tool_trace_cache")
        if settings.is_executable and episodes is None:
            return None
        return PartialEvidence(
            settings,
            plan,
            DerivedRecords(requests),
            EpisodeRecords(episodes) if settings.is_executable and episodes else None,
        )


def _visit(name: str, findings: Findings) -> Visit:
    if name == "eval_plan":
        return plan_file.check_order
    if name == "tool_trace_cache":
        return episode_log.check_order
    return partial(_visit_traffic, findings)


def _visit_traffic(findings: Findings, log: LogReader, entry: Entry) -> None:
    traffic_order.check_order(log, entry)
    if entry.record_type == "request" and not entry.is_withheld:
        findings.count("requests hashed from their bodies")
        with findings.refusals():
            check_request(entry)
