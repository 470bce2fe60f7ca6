"""Whatever a killed run leaves behind, the run goes on to the same end."""

import json
import shutil

import pytest

from harness.predict.folder import PredictFolder
from tests.predict.asking import Workspace, embeddings, right_or_vectors, server, tree

LAST_FILES = (
    "eval_record.json",
    "scores/nearest",
    "predictions.nearest.jsonl.manifest.json",
    "predictions.nearest.jsonl",
    "scores/candidate",
    "predictions.jsonl.manifest.json",
    "predictions.jsonl",
)
"""What is written after the last answer, in the reverse order of writing."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run with a baseline, and the number of requests it took."""
    root = tmp_path_factory.mktemp("finished")
    with server(right_or_vectors) as running:
        space = Workspace(root, url=running.url)
        space.document["engines"]["vectors"] = embeddings(running.url)
        space.document["comparators"] = [
            {"name": "nearest", "kind": "embedding", "engine": "vectors", "train": None}
        ]
        space.predict()
    return space


def without(finished, tmp_path, *names):
    """A copy of the finished folder that lacks some files."""
    folder = tmp_path / "out"
    shutil.copytree(finished.output, folder)
    for name in names:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


@pytest.mark.parametrize("count", range(1, len(LAST_FILES) + 1))
def test_files_after_the_last_answer_are_written_without_a_socket(
    finished, tmp_path, count
):
    folder = without(finished, tmp_path, *LAST_FILES[:count])

    finished.predict(resume=True, output=folder)

    assert tree(folder) == tree(finished.output)


def test_half_written_files_and_scores_are_no_part_of_the_result(finished, tmp_path):
    folder = without(finished, tmp_path, "eval_record.json", "scores/candidate")
    stage = folder / "scores" / ".candidate.abcd"
    stage.mkdir()
    (stage / "sample_scores.jsonl").write_text("half")
    (folder / ".predictions.jsonl.tmp").write_text("half")
    (folder / ".predictions.jsonl.tmp").unlink()

    finished.predict(resume=True, output=folder)

    assert tree(folder) == tree(finished.output)


@pytest.mark.slow
def test_torn_line_of_the_log_is_put_aside_and_its_row_asked_again(finished, tmp_path):
    folder = without(finished, tmp_path, *LAST_FILES)
    log = folder / "generation_log.jsonl"
    data = log.read_bytes()
    log.write_bytes(data[:-40])

    finished.predict(resume=True, output=folder)

    assert list(PredictFolder(folder).torn_tails()) == ["generation_log.jsonl.torn-1"]


def test_folder_with_its_lock_alone_is_empty(finished, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".lock").touch()

    assert PredictFolder(folder).state() == "empty"


@pytest.mark.parametrize("name", ["manifest.jsonl", "declaration.json", "prompt.json"])
def test_lost_copy_of_what_was_asked_is_made_again(finished, tmp_path, name):
    folder = without(finished, tmp_path, name, "eval_record.json")

    finished.predict(resume=True, output=folder)

    assert tree(folder) == tree(finished.output)


@pytest.mark.slow
def test_answer_in_the_log_of_requests_is_not_asked_for_again(tmp_path):
    """Killed between the record of a request's end and that of its row."""
    with server(right_or_vectors) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()
        for name in ("eval_record.json", *LAST_FILES[4:], "generation_log.jsonl"):
            path = space.output / name
            if path.exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        before = len(running.requests)

        space.predict(resume=True)

        assert len(running.requests) == before
    record = json.loads((space.output / "eval_record.json").read_text())
    assert record["status"] == "completed"
