"""A rescoring verified: its run by everything that a run is verified by, then itself.

That the new scores follow is shown by scoring the run's evidence under the record's
policy again. Each byte of the folder stands under a hash: those of the run under its
manifest, which the record names, all others under the last file of the folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.evaluations.record import RECORD_FILE
from harness.evidence.artifacts import artifact_bytes, read_json_artifact
from harness.evidence.folder import ARTIFACT_FILES, PARENT_FOLDER, RESCORED_FILE
from harness.regular_file import read_regular_file
from harness.run.rescored_folder import file_differences, replay_rescored
from harness.run.score import readable
from harness.verification.findings import Findings
from harness.verification.verify import Extras, Verification, leave_page, verify

_FILES = (
    RECORD_FILE,
    RESCORED_FILE,
    ARTIFACT_FILES["eval_report"],
    ARTIFACT_FILES["eval_task_results"],
    ARTIFACT_FILES["report"],
)


def verify_rescored(folder: Path, extras: Extras | None = None) -> Verification:
    """Verify what `fairtrial rescore` wrote.

    Raises ArtifactError where the run that it rests on is not there.
    """
    parent = verify(folder / PARENT_FOLDER, extras)
    findings = parent.findings.under(f"{PARENT_FOLDER}/")
    missing = [name for name in _FILES if not (folder / name).is_file()]
    for name in missing:
        findings.differs(name, "a file of the rescoring is not there", name, "nothing")
    scored = parent.scored
    if not missing:
        with findings.refusals(), readable(RESCORED_FILE):
            findings.count("hashes of files", len(_FILES))
            findings.add(file_differences(folder))
            _check_texts(folder, findings)
        with findings.refusals(), readable(RECORD_FILE):
            again = replay_rescored(folder)
            findings.count("episodes rescored", again.replayed.episodes)
            findings.add(again.replayed.differences)
            scored = again.rescored.scored
    leave_page(ARTIFACT_FILES["report"], findings)
    for path in sorted(folder.iterdir()):
        if path.name not in {*_FILES, PARENT_FOLDER}:
            findings.leave(path.name, "it is no part of the rescoring")
    return replace(parent, name=folder.resolve().name, findings=findings, scored=scored)


def _check_texts(folder: Path, findings: Findings) -> None:
    for name in _FILES:
        if name.endswith(".json"):
            path = folder / name
            findings.count("JSON files in their one text")
            if artifact_bytes(read_json_artifact(path)) != read_regular_file(path):
                findings.differs(
                    name, "the file does not have the one text of its content", "", ""
                )
