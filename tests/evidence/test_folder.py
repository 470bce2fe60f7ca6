"""A folder says what it holds, and whose it is."""

import pytest

from harness.errors import ArtifactError, EvidenceError
from harness.evidence.artifacts import write_json_artifact
from harness.evidence.folder import ARTIFACT_FILES, FolderState, RunFolder
from harness.evidence.lock import RunLock
from harness.evidence.manifest import MANIFEST_FILE
from harness.evidence.plan_file import write_plan
from tests.evidence.samples import key
from tests.evidence.test_plan_file import HEADER, TASKS

OWN, OTHER = HEADER.eval_config_hash, key(99)


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "out" / "run")
    made.create()
    return made


def test_an_absent_folder(tmp_path):
    assert RunFolder(tmp_path / "run").state() is FolderState.ABSENT


def test_a_new_folder_is_empty_and_private(folder):
    assert folder.state() is FolderState.EMPTY
    assert folder.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name", [".lock", ".eval_report.json.tmp", "candidate_io_cache.jsonl.torn-1"]
)
def test_what_a_run_leaves_before_its_first_file_is_nothing(folder, name):
    (folder.path / name).touch()

    assert folder.enter(OWN, resume=False) is FolderState.EMPTY


@pytest.mark.parametrize("name", ["candidate_io_cache", "eval_task_results", "report"])
def test_any_file_of_a_run_makes_it_unfinished(folder, name):
    folder.file(name).touch()

    assert folder.state() is FolderState.UNFINISHED


def test_the_manifest_makes_it_finished(folder):
    write_json_artifact(folder.manifest, {"eval_config_hash": OWN})

    assert folder.enter(OWN, resume=False) is FolderState.FINISHED
    assert folder.enter(OWN, resume=True) is FolderState.FINISHED


def test_an_unfinished_run_needs_resume(folder):
    write_json_artifact(folder.file("resolved_eval_config"), {"eval_config_hash": OWN})
    with pytest.raises(ArtifactError, match="eval_run_unfinished"):
        folder.enter(OWN, resume=False)

    assert folder.enter(OWN, resume=True) is FolderState.UNFINISHED


def test_a_run_that_is_under_way_is_not_called_unfinished(folder):
    write_json_artifact(folder.file("resolved_eval_config"), {"eval_config_hash": OWN})

    with (
        RunLock.acquire(folder.path, started_at="now"),
        pytest.raises(EvidenceError, match="eval_run_in_use"),
    ):
        folder.enter(OWN, resume=False)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    "name", ["resolved_eval_config.json", "eval_report.json", MANIFEST_FILE]
)
def test_another_config_is_refused(folder, name, resume):
    write_json_artifact(folder.path / name, {"eval_config_hash": OTHER})
    with pytest.raises(ArtifactError, match="eval_cli_artifact_conflict"):
        folder.enter(OWN, resume=resume)


def test_a_plan_binds_the_folder_too(folder):
    write_plan(folder.file("eval_plan"), HEADER, TASKS)

    assert folder.recorded_config_hash() == OWN
    assert folder.enter(OWN, resume=True) is FolderState.UNFINISHED
    with pytest.raises(ArtifactError, match="eval_cli_artifact_conflict"):
        folder.enter(OTHER, resume=True)


def test_files_of_somebody_else_are_refused(folder):
    (folder.path / "thesis.tex").touch()
    with pytest.raises(ArtifactError, match=r"thesis\.tex"):
        folder.enter(OWN, resume=True)


def test_a_note_beside_a_run_is_no_obstacle(folder):
    write_json_artifact(folder.file("eval_report"), {"eval_config_hash": OWN})
    (folder.path / "notes.txt").touch()

    assert folder.enter(OWN, resume=True) is FolderState.UNFINISHED


def test_a_folder_of_no_run_names_no_config(folder):
    assert folder.recorded_config_hash() is None


def test_every_artifact_has_its_own_file():
    assert len(set(ARTIFACT_FILES.values())) == len(ARTIFACT_FILES)


def test_bundle_is_no_run_folder(tmp_path):
    bundle = tmp_path / "run.bundle"
    bundle.write_bytes(b"x")

    with pytest.raises(ArtifactError, match="tar -xf"):
        RunFolder(bundle).state()
