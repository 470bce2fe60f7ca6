"""`verify`: every hash and every score of a run again, from its files alone.

The files are a run folder or a sealed bundle. Nothing outside the standard library is
imported here; a caller that has more passes in the checks that need it. Whatever the
files hold, the answer is a list of findings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.canonical import Json
from harness.errors import ArtifactError, EvidenceError
from harness.evidence.folder import ARTIFACT_FILES, FolderState, RunFolder
from harness.evidence.manifest import MANIFEST_FILE
from harness.run.score import ScoredCandidate, readable
from harness.run.settings import RESOLVED_FILE
from harness.verification.artifact_check import (
    JSON_FILES,
    ManifestCheck,
    check_identities,
    read_json,
)
from harness.verification.bundle import RunFiles, folder_files, open_bundle
from harness.verification.bundle_check import check_contents, check_rows
from harness.verification.evidence import PartialEvidence, SurveyedEvidence
from harness.verification.findings import Findings
from harness.verification.planned import (
    GATE_FILE,
    SOURCE_FILE,
    check_kinds,
    check_plan,
    check_source,
)
from harness.verification.recompute import Recomputation, TableRows
from harness.verification.record_check import READ_BY_SCORING, read_unused
from harness.verification.redaction import WithheldError
from harness.verification.survey import SurveyedLog
from harness.verification.unplanned import UnplannedRecords

TABLE_FILE = ARTIFACT_FILES["eval_task_results"]
PAGE_FILE = ARTIFACT_FILES["report"]
OpenTable = Callable[[RunFiles], TableRows]
CheckConfig = Callable[[Json], object]


@dataclass(frozen=True, slots=True)
class Extras:
    """Checks that need more than the standard library."""

    open_table: OpenTable
    """Opens the task table for comparison."""
    check_config: CheckConfig
    """Judges the resolved config as a whole; raises EvidenceError."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of verifying one run."""

    name: str
    findings: Findings
    manifest: Mapping[str, Json]
    """The manifest; empty where there is none that can be read."""
    bundle_hash: str | None
    """None for a folder."""
    scored: tuple[ScoredCandidate, ...]
    """Candidates whose aggregate is known."""
    incomplete: bool
    """Whether a missing pattern engine kept episodes from being scored."""

    @property
    def is_intact(self) -> bool:
        """Tell whether nothing that was checked is wrong."""
        return not self.findings.violations


def verify(path: Path, extras: Extras | None = None) -> Verification:
    """Verify a run folder or a bundle.

    Raises ArtifactError where there is no finished run at all, and EvidenceError
    where the machine refuses to read.
    """
    findings = Findings()
    files: RunFiles | None = None
    if path.is_dir():
        _require_finished(path)
        files = folder_files(path)
    elif not path.is_file():
        raise ArtifactError(
            "eval_artifact_invalid",
            "there is no run here",
            where=str(path),
            expected="a run folder, or a file that `fairtrial seal` wrote",
            actual="no regular file" if path.exists() else "no such file",
            recovery="name the output folder of a finished run, or a bundle",
        )
    else:
        with findings.refusals():
            files = open_bundle(path, findings)
    if files is None:
        return Verification(path.name, findings, {}, None, (), incomplete=False)
    return verify_files(files, findings, extras)


def _require_finished(path: Path) -> None:
    state = RunFolder(path).state()
    if state is FolderState.FINISHED:
        return
    unfinished = state is FolderState.UNFINISHED
    raise ArtifactError(
        "eval_run_unfinished" if unfinished else "eval_artifact_invalid",
        "there is no finished run in this folder",
        where=path.name,
        expected=f"a folder with {MANIFEST_FILE}",
        actual=state.value,
        recovery="finish it with `fairtrial run CONFIG --resume`, or name another",
    )


def verify_files(
    files: RunFiles, findings: Findings, extras: Extras | None
) -> Verification:
    """Verify the files of one run."""
    with SurveyedEvidence(files, findings) as surveyed:
        if files.header is not None:
            check_contents(files.header, findings)
            check_rows(files.header, surveyed.logs, findings)
        check = ManifestCheck(files, surveyed.logs, findings)
        check.run()
        documents = {
            file: read_json(files, file, findings) for file in JSON_FILES.values()
        }
        documents[MANIFEST_FILE] = check.manifest
        resolved = documents[RESOLVED_FILE]
        evidence = surveyed.evidence(resolved)
        scored: tuple[ScoredCandidate, ...] = ()
        without_engine = 0
        if evidence is not None:
            _check_header(evidence, documents, findings)
            _check_gates(evidence, documents, findings)
            table = _table(files, evidence, check.changed, extras, findings)
            recomputation = Recomputation(evidence, files, documents, findings, table)
            with findings.refusals():
                _require_records(evidence)
                scored = recomputation.run()
            without_engine = recomputation.without_engine
            unplanned = UnplannedRecords(evidence, whole=recomputation.whole)
            for name, log in surveyed.logs.items():
                unplanned.check(name, log, findings)
        for log in surveyed.logs.values():
            _read_rest(log, findings)
        _extra_config_check(resolved, extras, findings)
    if PAGE_FILE in files.windows:
        leave_page(PAGE_FILE, findings)
    header = files.header
    return Verification(
        files.name,
        findings,
        check.manifest,
        None if header is None else str(header.payload()["bundle_hash"]),
        scored,
        incomplete=bool(without_engine),
    )


def _check_header(
    evidence: PartialEvidence,
    documents: dict[str, dict[str, Json]],
    findings: Findings,
) -> None:
    """Compare the plan's header with the config and with all other identities."""
    config, header = evidence.config, evidence.plan.header
    where = "eval_plan.jsonl, record 1"
    for name, ours, theirs in (
        ("eval_config_hash", config.eval_config_hash, header.eval_config_hash),
        ("scoring_policy_hash", config.scoring_policy_hash, header.scoring_policy_hash),
        (
            "scoring_policy",
            config.scoring_policy.semantic_payload(),
            header.scoring_policy.semantic_payload(),
        ),
        ("trials", config.trials, header.trials),
        (
            "scope",
            "trace_and_executable" if config.is_executable else "trace",
            header.scope,
        ),
        (
            "candidates",
            [[a, each["canonical_id"]] for a, each in sorted(config.endpoints.items())],
            [[each.alias, each.canonical_id] for each in header.candidates],
        ),
    ):
        findings.equal("identities", f"{where}, {name}", ours, theirs)
    with findings.refusals(), readable(where):
        check_identities(documents, header, findings)


def _check_gates(
    evidence: PartialEvidence,
    documents: dict[str, dict[str, Json]],
    findings: Findings,
) -> None:
    """Compare the plan with the reports of the gates, and those with each other."""
    source, report = documents[SOURCE_FILE], documents[GATE_FILE]
    header, resolved = evidence.plan.header, documents[RESOLVED_FILE]
    with findings.refusals(), readable(SOURCE_FILE):
        check_source(source, header, findings)
    with findings.refusals(), readable(GATE_FILE):
        check_plan(report, source, resolved, header, findings)
    with findings.refusals(), readable(SOURCE_FILE):
        check_kinds(source, evidence.plan, findings)
    with findings.refusals(), readable(MANIFEST_FILE):
        level = resolved["semantic_payload"]["isolation"]["level"]
        applied = documents[MANIFEST_FILE]["containment"]
        if applied:
            where = f"{MANIFEST_FILE}, containment.level"
            findings.equal("levels of containment", where, level, applied["level"])


def _require_records(evidence: PartialEvidence) -> None:
    """Refuse a plan of more episodes than any evidence is of, before it is walked."""
    header = evidence.plan.header
    asked = sum(len(evidence.task_ids_of(each)) for each in header.candidates)
    logs = evidence.logs().items()
    records = sum(len(log) for name, log in logs if name != "eval_plan")
    if asked * header.trials > records:
        raise EvidenceError(
            "eval_evidence_invalid",
            "more episodes are planned than records were kept",
            where="eval_plan.jsonl, record 1",
            expected=f"{records} episodes or fewer, one record each at the least",
            actual=f"{asked * header.trials}",
            recovery="bring back an intact copy of the run folder",
        )


def _table(
    files: RunFiles,
    evidence: PartialEvidence,
    changed: set[str],
    extras: Extras | None,
    findings: Findings,
) -> TableRows | None:
    if TABLE_FILE not in files.windows:
        if evidence.config.write_task_results:
            findings.differs(
                TABLE_FILE,
                "the task table is not there",
                "a table, as the config asks",
                "none",
            )
        return None
    if extras is None:
        findings.leave(
            f"the rows of {TABLE_FILE}",
            "reading them needs pyarrow: `fairtrial verify` does; its hash was checked",
        )
        return None
    if "eval_task_results" in changed:
        findings.leave(f"the rows of {TABLE_FILE}", "its bytes are not the run's own")
        return None
    return extras.open_table(files)


def _read_rest(log: SurveyedLog, findings: Findings) -> None:
    """Decode what no planned episode needed: superseded work and crash evidence."""
    for record in log.unused(READ_BY_SCORING):
        with findings.refusals():
            entry = log.entry(record)
            try:
                with readable(f"{log.format.file_name}, record {record + 1}"):
                    read_unused(entry, findings)
            except WithheldError:
                findings.leave(
                    f"{entry.record_type} records of {log.format.file_name}",
                    "they were withheld",
                )


def _extra_config_check(
    resolved: dict[str, Json], extras: Extras | None, findings: Findings
) -> None:
    if extras is None:
        findings.leave(
            RESOLVED_FILE,
            "whether it could be published as it stands is judged by "
            "`fairtrial verify`; its hashes were checked",
        )
        return
    with findings.refusals(), readable(RESOLVED_FILE):
        extras.check_config(resolved)
        findings.count("configs judged again")


def leave_page(name: str, findings: Findings) -> None:
    """Say of a page for people that only its bytes are bound."""
    findings.leave(name, "its hash was checked, not its text")
