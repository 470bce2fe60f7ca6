"""A later evaluation: a run's frozen rows, asked of another engine."""

import pytest

from harness.cli.main import main
from tests.predict.asking import (
    Flaky,
    Workspace,
    chat,
    record_of,
    right_or_vectors,
    run_command,
    server,
    tree,
)


@pytest.fixture
def endpoint():
    with server(right_or_vectors) as running:
        yield running


@pytest.fixture
def space(tmp_path, endpoint):
    return Workspace(tmp_path, url=endpoint.url)


def test_later_evaluation_is_worked_out_again_alone(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    run_command(space)
    words = ("--evaluate", str(space.output), "--engine", "main")
    run_command(space, *words, output=tmp_path / "later")
    space.output.rename(tmp_path / "gone")

    assert main(["verify", str(tmp_path / "later")]) == 0


def test_evaluation_asks_the_frozen_rows_of_another_engine(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    run_command(space)
    before, again = tree(space.output), tmp_path / "later"
    space.manifest.write_text("other rows now\n")
    (tmp_path / "system.txt").unlink()
    space.document["engines"]["other"] = chat(
        endpoint.url, candidate={"alias": "other", "model": "second"}
    )

    status = run_command(
        space, "--evaluate", str(space.output), "--engine", "other", output=again
    )

    record = record_of(again)
    assert status == 0
    assert tree(space.output) == before
    assert record["record_id"].startswith("eval-")
    assert record["parent"]["record_id"] == "original"
    assert (
        record["protocol"]["fingerprint"]
        == record_of(space.output)["protocol"]["fingerprint"]
    )
    assert (again / "manifest.jsonl").read_bytes() == before["manifest.jsonl"]


def test_evaluation_is_worked_out_again_like_a_run(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    run_command(space)
    words = ("--evaluate", str(space.output), "--engine", "main")
    run_command(space, *words, output=tmp_path / "later")
    before = len(endpoint.requests)

    assert run_command(space, *words, output=tmp_path / "later") == 0
    assert len(endpoint.requests) == before


def test_evaluation_that_its_run_does_not_find_is_told(tmp_path, endpoint, capsys):
    space = Workspace(tmp_path, url=endpoint.url)
    run_command(space)
    words = ("--evaluate", str(space.output), "--engine", "main")
    run_command(space, *words, output=tmp_path / "beside")
    beside = capsys.readouterr().err
    run_command(space, *words, output=tmp_path / "far" / "away")

    assert "does not lie beside" not in beside
    assert "away does not lie beside out" in capsys.readouterr().err


def test_evaluation_keeps_the_decoding_of_its_run(tmp_path, endpoint, capsys):
    space = Workspace(tmp_path, url=endpoint.url)
    run_command(space)
    space.document["decoding"] |= {"max_tokens": 9, "seed": 8}
    words = ("--evaluate", str(space.output), "--engine", "main")

    assert run_command(space, *words, output=tmp_path / "later") == 2

    shown = capsys.readouterr().err
    assert "decoding.max_tokens" in shown
    assert "decoding.seed" in shown


def test_evaluation_needs_an_engine_by_name(space, tmp_path):
    run_command(space)
    words = ("--evaluate", str(space.output))

    assert run_command(space, *words, output=tmp_path / "later") == 2


def test_evaluation_inside_its_run_is_refused(space):
    run_command(space)
    words = ("--evaluate", str(space.output), "--engine", "main")

    assert run_command(space, *words, output=space.output / "later") == 2


def test_unfinished_run_is_not_evaluated(tmp_path):
    with server(Flaky("about")) as running:
        space = Workspace(tmp_path, url=running.url)
        run_command(space)
        words = ("--evaluate", str(space.output), "--engine", "main")

        assert run_command(space, *words, output=tmp_path / "later") == 7


def test_edited_rows_of_a_run_are_not_evaluated(space, tmp_path, endpoint):
    run_command(space)
    manifest = space.output / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace("billing", "returns"))
    words = ("--evaluate", str(space.output), "--engine", "main")

    assert run_command(space, *words, output=tmp_path / "later") == 3


def test_uses_of_a_holdout_are_counted(tmp_path, endpoint):
    space = Workspace(tmp_path, url=endpoint.url)
    space.document["evaluation"]["holdout"] = True
    words = ("--evaluate", str(space.output), "--engine", "main")
    run_command(space)
    run_command(space, *words, output=tmp_path / "second")
    run_command(space, *words, output=tmp_path / "third")

    folders = (space.output, tmp_path / "second", tmp_path / "third")
    assert [record_of(each)["holdout"]["uses_before"] for each in folders] == [0, 1, 2]
    assert run_command(space) == 0
