"""The present scorer applied to what an evaluation recorded; nothing is asked again.

What is scored is first compared with the hashes that the record names. Where something
is missing or is not what was scored, the answer is every reason, by code, and no score.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.canonical import hash_file
from harness.errors import FairtrialError
from harness.evaluations.contracts import (
    TASK_OF_CONTRACT,
    answer_metrics,
    mlperf_metrics,
)
from harness.evaluations.record import RECORD_FILE, MetricValue
from harness.evaluations.rescoring import Obstacle, ObstacleCode
from harness.evaluations.stored import StoredRecord
from harness.evidence.folder import PARENT_FOLDER
from harness.evidence.manifest import EVIDENCE_FILES
from harness.predict.folder import DECLARATION_FILE, MANIFEST_FILE, PredictFolder
from harness.predictions.action_ir import score_files
from harness.predictions.answers import score_classification, score_json_records
from harness.predictions.mlperf_agentic import EVENTS, score_events
from harness.run.finished import open_finished
from harness.run.rescored_folder import open_evidence
from harness.run.score import ScoredCandidate, readable, score_run

Figures = Mapping[str, Mapping[str, MetricValue]]
"""Metrics by name, by subject."""
_LACK: Final[Mapping[str, ObstacleCode]] = {
    "rows": "raw_output_missing",
    "predictions": "raw_output_missing",
    "events": "raw_output_missing",
    "manifest": "gold_missing",
    "dataset": "gold_missing",
    "declaration": "contract_hash_mismatch",
}
"""What the lack of a scored file means, by what the file is."""


class NotRescorableError(Exception):
    """A score that cannot be made again, with all reasons."""

    def __init__(self, obstacles: Sequence[Obstacle]) -> None:
        self.obstacles = tuple(obstacles)
        super().__init__(", ".join(each.code for each in obstacles))


def score_again(record: StoredRecord, evidence: Sequence[Path]) -> Figures:
    """Score what a record rests on; `evidence` are scored files that lie elsewhere.

    Raises NotRescorableError.
    """
    contract = str(record.payload["scorer"].get("contract"))
    if contract not in TASK_OF_CONTRACT:
        raise _refused("scorer_version_gone", f"no scorer of {contract} is here")
    if not record.is_completed:
        raise _refused("rows_incomplete", "the evaluation did not come to its end")
    try:
        with readable(RECORD_FILE):
            return _figures(record, contract, evidence)
    except FairtrialError as error:
        raise _refused(_code_of(error), str(error).splitlines()[0]) from None


def _figures(record: StoredRecord, contract: str, evidence: Sequence[Path]) -> Figures:
    kind = record.payload["kind"]
    if kind == "executable":
        _require_evidence(record)
        with open_finished(record.folder) as run:
            return _of_candidates(score_run(run.evidence, lambda _: None))
    if kind == "rescore":
        _require_parent(record)
        with open_evidence(record.folder) as scored_evidence:
            return _of_candidates(score_run(scored_evidence, lambda _: None))
    if kind == "predict":
        return _of_predictions(record, contract)
    if kind == "mlperf-agentic":
        files = _files_beside(record)
    elif kind == "score":
        files = _files_given(record, evidence)
    else:
        raise _refused("scorer_version_gone", f"no evaluation of kind {kind} is here")
    name = str(record.payload["subjects"][0]["name"])
    return {name: _of_files(contract, files)}


def _require_evidence(record: StoredRecord) -> None:
    """Refuse evidence of episodes that is not what the record was made of."""
    artifacts = record.payload["artifacts"]
    for log in EVIDENCE_FILES.values():
        path = record.folder / log.file_name
        if log.file_name in artifacts:
            _require(record, {"events": path})


def _require_parent(record: StoredRecord) -> None:
    """Refuse another run under a rescoring than the one that its record names."""
    with open_finished(record.folder / PARENT_FOLDER) as run:
        stated = record.payload["parent"].get("manifest_content_hash")
        if run.manifest_hash != stated:
            detail = f"{PARENT_FOLDER} is not the run that was scored"
            raise _refused("raw_output_missing", detail)


def _of_candidates(scored: Sequence[ScoredCandidate]) -> Figures:
    return {
        one.aggregate.candidate_alias: {
            each.metric: MetricValue(
                each.value,
                each.numerator,
                each.denominator or None,
                each.not_applicable_reason,
            )
            for each in one.aggregate.metrics
        }
        for one in scored
    }


def _of_predictions(record: StoredRecord, contract: str) -> Figures:
    folder = PredictFolder(record.folder)
    shared = {"manifest": folder.file(MANIFEST_FILE)}
    if DECLARATION_FILE in record.payload["artifacts"]:
        shared["declaration"] = folder.file(DECLARATION_FILE)
    found: dict[str, Mapping[str, MetricValue]] = {}
    for subject in record.payload["subjects"]:
        name = str(subject["name"])
        files = {**shared, "predictions": folder.predictions(name)}
        _require(record, files)
        if contract != "action-ir":
            # Predictions of these two hold gold and text together, as rows.
            files = {**files, "rows": files["predictions"]}
        found[name] = _of_files(contract, files)
    return found


def _files_beside(record: StoredRecord) -> dict[str, Path]:
    artifacts = record.payload["artifacts"]
    dataset = next((n for n in artifacts if n.startswith("dataset.")), "dataset")
    files = {
        "dataset": record.folder / dataset,
        "events": record.folder / EVENTS,
    }
    _require(record, files)
    return files


def _require(record: StoredRecord, files: Mapping[str, Path]) -> None:
    """Refuse files that are not the ones that the record names."""
    artifacts = record.payload["artifacts"]
    lacking = []
    for what, path in files.items():
        stated = artifacts.get(path.name)
        if not path.is_file():
            lacking.append(Obstacle(_LACK[what], f"{path.name} is not in the folder"))
        elif hash_file(path) != stated:
            detail = f"{path.name} is not the file that was scored"
            lacking.append(Obstacle(_LACK[what], detail))
    if lacking:
        raise NotRescorableError(lacking)


def _files_given(record: StoredRecord, evidence: Sequence[Path]) -> dict[str, Path]:
    """Find the scored files among those that were named, by their hashes."""
    known = {hash_file(path): path for path in evidence if path.is_file()}
    inputs = {
        what: each
        for what, each in record.payload.get("inputs", {}).items()
        if what in _LACK
    }
    lacking = [
        Obstacle(
            _LACK[what],
            f"{each['file']} ({each['content_hash']}) lies outside the folder; "
            "name it under `evidence`",
        )
        for what, each in inputs.items()
        if each["content_hash"] not in known
    ]
    if lacking:
        raise NotRescorableError(lacking)
    return {
        what: known[each["content_hash"]]
        for what, each in inputs.items()
        if what in _LACK
    }


def _of_files(contract: str, files: Mapping[str, Path]) -> Mapping[str, MetricValue]:
    if contract == "mlperf-agentic":
        summary = score_events(files["dataset"], files["events"]).summary()
        return mlperf_metrics(summary.head, summary.diagnostics)["metrics"]
    with tempfile.TemporaryDirectory(prefix="fairtrial-") as scratch:
        output = Path(scratch) / "scores"
        if contract == "action-ir":
            scored = score_files(files["manifest"], files["predictions"], output)
            aggregate = scored.aggregate
        else:
            score = (
                score_json_records
                if contract == "json-records"
                else score_classification
            )
            aggregate = score(files["declaration"], files["rows"], output).aggregate
    return answer_metrics(contract, aggregate)["metrics"]


def _code_of(error: FairtrialError) -> ObstacleCode:
    if error.code == "eval_run_unfinished":
        return "rows_incomplete"
    if error.code.startswith("eval_scoring"):
        return "contract_hash_mismatch"
    return "raw_output_missing"


def _refused(code: ObstacleCode, detail: str) -> NotRescorableError:
    return NotRescorableError([Obstacle(code, detail)])
