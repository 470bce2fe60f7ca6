"""The one place where the result of a run is put together.

`RunResult.produce` makes every file that follows from config, data set and evidence, in
a fixed order, and hands each to `keep`: a run that ends writes them, a replay compares
them with what is there. The manifest is written last and makes the folder finished. A
further file of the result belongs into `produce` and into `RESULT_FILES`; the
evaluation record is the last, since it names the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harness.canonical import Json, hash_file
from harness.config.teacher_forced import TeacherForcedConfig
from harness.errors import ArtifactError, Violation
from harness.evaluations.record import RECORD_FILE
from harness.evidence.artifacts import artifact_bytes, read_json_artifact, write_once
from harness.evidence.candidate_log import (
    CANDIDATE_LOG,
    CandidateLog,
    CandidateRecords,
    check_bodies,
)
from harness.evidence.folder import RunFolder
from harness.evidence.manifest import (
    MANIFEST_FILE,
    MANIFEST_VERSION,
    RecordRoot,
    RunTiming,
    evidence_root,
    manifest_hash,
    write_manifest,
)
from harness.evidence.runtime_facts import runtime_facts
from harness.predictions.mlperf_agentic import (
    DIAGNOSTICS,
    EVENTS,
    INDEX_MAP,
    SCORES,
    ScoredRun,
    score_events,
)
from harness.run.difference import differences
from harness.run.teacher_forced.event_log import event_lines, index_map_pieces
from harness.run.teacher_forced.frozen import CONFIG_FILE, EVAL_SCOPE, FrozenInputs
from harness.run.teacher_forced.record import turns_record
from harness.run.teacher_forced.recorded import RecordedTurns
from harness.run.teacher_forced.requests import RequestPlan
from harness.run.teacher_forced.tally import TurnTally
from harness.scoring.aggregate import STOPS_OVER_CAP
from harness.scoring.mlperf_agentic.diagnostics import NOTHING_SCORABLE

REPORT_FILE: Final = "eval_report.json"
REPORT_VERSION: Final = "1.0"
RESULT_FILES: Final = (
    EVENTS,
    INDEX_MAP,
    SCORES,
    DIAGNOSTICS,
    REPORT_FILE,
    RECORD_FILE,
)
"""Files that follow from the evidence, in the order of writing."""
EVIDENCE_NAME: Final = "candidate_io_cache"
Keep = Callable[[str, Iterable[bytes]], None]
"""Takes one file of the result by its name, in pieces."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run comes to, from its folder alone."""

    folder: Path
    inputs: FrozenInputs
    plan: RequestPlan
    records: CandidateRecords

    def produce(self, keep: Keep) -> dict[str, Json]:
        """Make every file of the result and return the report.

        Raises EvidenceError where the evidence is not the plan's.
        """
        config = self.inputs.config
        tally = TurnTally()
        turns = RecordedTurns(
            self.plan,
            self.records,
            config.asking.on_failed_turn == "abort_conversation",
        )
        keep(EVENTS, event_lines(tally.passing(turns.walk())))
        keep(INDEX_MAP, index_map_pieces(tally.uuids))
        scored = score_events(self.inputs.dataset, self.folder / EVENTS)
        for name, pieces in scored.files().items():
            keep(name, pieces)
        report = build_report(config, self.plan, tally, scored.summary())
        keep(REPORT_FILE, [artifact_bytes(report)])
        record = turns_record(config, scored, report, self._written())
        keep(RECORD_FILE, [artifact_bytes(record)])
        return report

    def _written(self) -> dict[str, str]:
        """Return the hashes of what the record is about, as it lies in the folder."""
        names = (CONFIG_FILE, self.inputs.dataset.name, *RESULT_FILES)
        paths = [self.folder / name for name in names if name != RECORD_FILE]
        return {path.name: hash_file(path) for path in paths if path.is_file()}


def build_report(
    config: TeacherForcedConfig, plan: RequestPlan, tally: TurnTally, scored: ScoredRun
) -> dict[str, Json]:
    """Return the payload of `eval_report.json`; it reads no clock and no file."""
    reasons = []
    if scored.score is None:
        reasons.append(NOTHING_SCORABLE)
    if tally.unanswered_share > config.publication.max_stop_share:
        reasons.append(STOPS_OVER_CAP)
    candidate = config.candidate
    return {
        "schema_version": REPORT_VERSION,
        "eval_scope": EVAL_SCOPE,
        "eval_config_hash": config.eval_config_hash,
        "contract": scored.diagnostics["contract"],
        "dataset": {
            "content_hash": config.dataset.content_hash,
            "conversations": len(plan.conversations),
            "turns": sum(len(each.turns) for each in plan.conversations),
        },
        "candidate": {
            "alias": candidate.alias,
            "canonical_id": candidate.canonical_id,
            "model": candidate.model,
        },
        "repeats": config.asking.repeats,
        "scores": scored.head,
        "headline": scored.diagnostics["headline"],
        "answered_only": scored.diagnostics["answered_only"],
        "asked": tally.payload(),
        "publication_allowed": not reasons,
        "non_publication_reasons": reasons,
    }


def open_records(folder: RunFolder) -> CandidateLog:
    """Open the evidence for reading, every body checked; raises EvidenceError."""
    path = folder.file(EVIDENCE_NAME)
    return CandidateLog.open(path, writable=False, visit=check_bodies)


def publish(
    folder: RunFolder, inputs: FrozenInputs, plan: RequestPlan, *, started: datetime
) -> dict[str, Json]:
    """Write the result and the manifest; return the report."""

    def write(name: str, pieces: Iterable[bytes]) -> None:
        write_once(folder.path / name, pieces)

    with open_records(folder) as records:
        result = RunResult(folder.path, inputs, plan, records)
        report = result.produce(write)
        root = _root(records)
    write_manifest(folder.path, _manifest(folder, inputs, report, root, started))
    return report


@dataclass(frozen=True, slots=True)
class ResultAgain:
    """What came out of the evidence again, and where the folder says otherwise."""

    report: dict[str, Json]
    differences: tuple[Violation, ...]


def lost_files(folder: RunFolder) -> tuple[Violation, ...]:
    """Return what a finished folder does not hold, without which it is not read."""
    return tuple(
        violation
        for name in (CONFIG_FILE, CANDIDATE_LOG.file_name, *RESULT_FILES)
        if not (folder.path / name).is_file()
        for violation in differences(
            name, "the file that the run wrote", "no such file"
        )
    )


def compare(folder: RunFolder, inputs: FrozenInputs, plan: RequestPlan) -> ResultAgain:
    """Make the result again beside what is stored; nothing is written."""
    lost = lost_files(folder)
    if lost:
        raise ArtifactError.from_violations(lost)
    manifest = read_json_artifact(folder.manifest)
    found: list[Violation] = []

    def check(name: str, pieces: Iterable[bytes]) -> None:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        stored = folder.path / name
        actual = hash_file(stored) if stored.is_file() else "no such file"
        found.extend(differences(name, f"sha256:{digest.hexdigest()}", actual))

    with open_records(folder) as records:
        report = RunResult(folder.path, inputs, plan, records).produce(check)
        root = _root(records)
    stated = manifest if isinstance(manifest, dict) else {}
    again = _committed(folder, inputs, report, root)
    again["manifest_hash"] = manifest_hash(stated)
    for name, value in again.items():
        found.extend(differences(f"{MANIFEST_FILE}.{name}", value, stated.get(name)))
    members = sorted({*again, *_FACTS})
    found.extend(differences(f"{MANIFEST_FILE}, members", members, sorted(stated)))
    return ResultAgain(report, tuple(found))


def _root(records: CandidateLog) -> RecordRoot:
    return RecordRoot(len(records.log), records.log.merkle_root)


def _committed(
    folder: RunFolder,
    inputs: FrozenInputs,
    report: Mapping[str, Json],
    root: RecordRoot,
) -> dict[str, Json]:
    """Return the members of the manifest that follow from the other files."""
    names = (CONFIG_FILE, inputs.dataset.name, CANDIDATE_LOG.file_name, *RESULT_FILES)
    candidate = inputs.config.candidate
    evidence = {EVIDENCE_NAME: root}
    return {
        "schema_version": MANIFEST_VERSION,
        "eval_scope": EVAL_SCOPE,
        "eval_config_hash": inputs.config.eval_config_hash,
        "candidates": [
            {"alias": candidate.alias, "canonical_id": candidate.canonical_id}
        ],
        "artifacts": {
            Path(name).stem: {
                "file": name,
                "content_hash": hash_file(folder.path / name),
            }
            for name in names
        },
        "evidence": {name: each.as_payload() for name, each in evidence.items()},
        "merkle_root": evidence_root(evidence),
        "publication_allowed": report["publication_allowed"],
        "non_publication_reasons": report["non_publication_reasons"],
    }


_FACTS: Final = ("runtime", "torn_tails", "timing")
"""Members of a manifest that follow from nothing else in the folder."""


def _manifest(
    folder: RunFolder,
    inputs: FrozenInputs,
    report: Mapping[str, Json],
    root: RecordRoot,
    started: datetime,
) -> dict[str, Json]:
    payload = {
        **_committed(folder, inputs, report, root),
        "runtime": runtime_facts(),
        "torn_tails": folder.torn_tails(),
        "timing": RunTiming(started, datetime.now(UTC)).as_payload(),
    }
    return {**payload, "manifest_hash": manifest_hash(payload)}
