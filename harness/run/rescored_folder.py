"""A rescoring read back: the record, and the run in it that it rests on.

Nothing in the folder is trusted. The policy is read from the record, the run is scored
under it again, and everything that the folder states is compared with what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.canonical import Json, is_content_hash
from harness.conversation.task import ScoringPolicy
from harness.errors import ArtifactError, Violation
from harness.evaluations.record import RECORD_FILE
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.folder import (
    ARTIFACT_FILES,
    PARENT_FOLDER,
    RESCORED_FILE,
    FolderState,
    RunFolder,
)
from harness.evidence.manifest import MANIFEST_FILE
from harness.evidence.task_table import read_stretches
from harness.regular_file import read_regular_file
from harness.run.difference import differences
from harness.run.finished import no_run, open_finished, require_finished
from harness.run.policies import CHANGES, NamedPolicy, named_policy
from harness.run.recorded import Evidence, RunEvidence
from harness.run.replay import Replayed
from harness.run.rescore import Rescored, bound_files, score_again
from harness.run.rescored_evidence import RescoredEvidence
from harness.run.table_comparison import TableComparison
from harness.scoring.failures import ERROR_TAXONOMY_HASH

_REPORT: Final = ARTIFACT_FILES["eval_report"]
_FROM_FILE: Final = "file"


def is_rescored(path: Path) -> bool:
    """Tell a rescoring from a run folder and everything else."""
    return (path / RESCORED_FILE).is_file() and not (path / MANIFEST_FILE).exists()


@dataclass(frozen=True, slots=True)
class ReplayedRecord:
    """A rescoring worked out again."""

    replayed: Replayed
    rescored: Rescored


def replay_rescored(folder: Path) -> ReplayedRecord:
    """Score the run of a rescoring again and compare; nothing is written.

    Raises ArtifactError for a record that cannot be read, and what a rescoring
    raises for evidence that cannot be used.
    """
    record = read_record(folder)
    with open_finished(folder / PARENT_FOLDER) as run:
        named = _policy_of(record, run.evidence.config.scoring_policy)
        table = TableComparison(read_stretches(folder / _table()))
        page = read_regular_file(folder / ARTIFACT_FILES["report"])
        rescored = score_again(
            run,
            named,
            table.take,
            # How a page is laid out is no part of a score; its bytes are bound.
            lambda *_: page,
            taxonomy_hash=_cited_taxonomy(record),
        )
        uses = {name: log.use() for name, log in run.evidence.logs().items()}
    found = [
        *differences(RECORD_FILE, rescored.record, record),
        *differences(_REPORT, rescored.report, read_json_artifact(folder / _REPORT)),
        *table.end(),
        *file_differences(folder),
    ]
    replayed = Replayed(
        rescored.report,
        dict(rescored.record["candidate_aggregates"]),
        tuple(found),
        table.requests,
        table.rows,
        uses,
    )
    return ReplayedRecord(replayed, rescored)


def read_record(folder: Path) -> dict[str, Json]:
    """Return the record of a rescoring; raise ArtifactError for another one."""
    record = read_json_artifact(folder / RECORD_FILE)
    if not isinstance(record, dict) or record.get("kind") != "rescore":
        raise _unreadable("kind", "rescore", str(record)[:200])
    return record


def file_differences(folder: Path) -> Iterator[Violation]:
    """Yield every file of a rescoring whose bytes are not those that were written."""
    stated = read_json_artifact(folder / RESCORED_FILE)
    return differences(RESCORED_FILE, bound_files(folder), stated)


@contextmanager
def open_evidence(folder: Path) -> Iterator[Evidence]:
    """Open the evidence of a run, or of a rescoring as its policy reads it.

    An unfinished run has evidence too. Raises ArtifactError where there is none.
    """
    if not is_rescored(folder):
        state = RunFolder(folder).state()
        if state in (FolderState.ABSENT, FolderState.EMPTY):
            raise no_run(folder, state)
        if not RunFolder(folder).file("eval_plan").exists():
            require_finished(folder)
        with RunEvidence(folder) as evidence:
            yield evidence
        return
    record = read_record(folder)
    with RunEvidence(folder / PARENT_FOLDER) as parent:
        named = _policy_of(record, parent.config.scoring_policy)
        yield RescoredEvidence(parent, named.policy, known_supported=True)


def _policy_of(record: dict[str, Json], recorded: ScoringPolicy) -> NamedPolicy:
    """Return the policy of a record, under a name that really gives it."""
    policy = ScoringPolicy.from_payload(
        record.get("scoring_policy"), f"{RECORD_FILE}, scoring_policy"
    )
    name = record.get("policy_name")
    known = isinstance(name, str) and name in CHANGES
    if not known or named_policy(str(name), recorded).policy != policy:
        return NamedPolicy(_FROM_FILE, policy)
    return NamedPolicy(str(name), policy)


def _cited_taxonomy(record: dict[str, Json]) -> str:
    scorer = record.get("scorer")
    stated = scorer.get("error_taxonomy_hash") if isinstance(scorer, dict) else None
    return str(stated) if is_content_hash(stated) else ERROR_TAXONOMY_HASH


def _table() -> str:
    return ARTIFACT_FILES["eval_task_results"]


def _unreadable(where: str, expected: str, actual: str) -> ArtifactError:
    return ArtifactError(
        "eval_artifact_invalid",
        "the record is none of a rescoring",
        where=f"{RECORD_FILE}, {where}",
        expected=expected,
        actual=actual,
        recovery="bring back the folder as `fairtrial rescore` wrote it",
    )
