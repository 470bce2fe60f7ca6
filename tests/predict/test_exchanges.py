"""A final row follows from the recorded exchange of its request, or is named."""

import shutil

import pytest

from harness.cli.main import main
from tests.predict.asking import Workspace, right_or_vectors, server
from tests.servers import completion

AFTER_THE_ANSWERS = (
    "eval_record.json",
    "scores",
    "predictions.jsonl.manifest.json",
    "predictions.jsonl",
)


@pytest.fixture
def space(tmp_path):
    """A workspace with a finished run."""
    with server(right_or_vectors) as running:
        space = Workspace(tmp_path, url=running.url)
        space.predict()
        yield space


def unfinished(folder):
    for name in AFTER_THE_ANSWERS:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_rows_without_an_exchange_are_named(space, command, capsys):
    unfinished(space.output)
    log = space.output / "candidate_io_cache.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]))
    space.predict(resume=True)
    capsys.readouterr()

    assert main([command, str(space.output)]) == 1

    told = capsys.readouterr().err
    assert "generation_log.jsonl, subject candidate, row" in told
    assert "no exchange of that request" in told


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_row_that_says_something_else_than_its_response_is_named(
    space, tmp_path, command, capsys
):
    other = tmp_path / "other"
    other.mkdir()
    with server(lambda received: completion("returns")) as running:
        second = Workspace(other, url=running.url)
        second.predict()
    unfinished(space.output)
    name = "generation_log.jsonl"
    shutil.copy(second.output / name, space.output / name)
    space.predict(resume=True)
    capsys.readouterr()

    assert main([command, str(space.output)]) == 1

    assert "another text" in capsys.readouterr().err
