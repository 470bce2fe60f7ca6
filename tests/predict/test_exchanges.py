"""A final row follows from the recorded exchange of its request, or is named."""

import shutil

import pytest

from harness.cli.main import main
from harness.errors import ArtifactError
from harness.evidence.generation_log import GenerationLog
from harness.predict.folder import PredictFolder
from harness.predict.outputs import write_outputs
from harness.predict.record import completed_record, write_evaluation
from harness.predictions.questions import read_questions
from tests.predict.asking import Workspace, right_or_vectors, server
from tests.servers import completion

AFTER_THE_ANSWERS = (
    "eval_record.json",
    "scores",
    "predictions.jsonl.manifest.json",
    "predictions.jsonl",
)
REQUESTS = "candidate_io_cache.jsonl"
ROWS = "generation_log.jsonl"


@pytest.fixture
def running():
    with server(right_or_vectors) as endpoint:
        yield endpoint


@pytest.fixture
def space(tmp_path, running):
    """A workspace with a finished run."""
    space = Workspace(tmp_path, url=running.url)
    space.predict()
    return space


@pytest.fixture
def other_rows(tmp_path):
    """What a model that says something else left as its rows."""
    root = tmp_path / "other"
    root.mkdir()
    with server(lambda received: completion("returns")) as running:
        second = Workspace(root, url=running.url)
        second.predict()
    return second.output / ROWS


def unfinished(folder, names=AFTER_THE_ANSWERS):
    for name in names:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def shortened(log, records):
    """Cut a log behind some of its records; return how many responses it still has."""
    kept = b"".join(log.read_bytes().splitlines(keepends=True)[:records])
    log.write_bytes(kept)
    return kept.count(b'"record_type":"attempt"')


def finished_anyway(space):
    """Write what follows from the rows alone, as no run would."""
    plan, folder = space.plan(), PredictFolder(space.output)
    questions = read_questions(plan.manifest, plan.contract)
    with GenerationLog.open(space.output / ROWS, writable=False) as rows:
        results = write_outputs(plan, folder, rows, questions)
    write_evaluation(folder, completed_record(plan, folder, results))


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_rows_without_an_exchange_are_named(space, command, capsys):
    unfinished(space.output)
    shortened(space.output / REQUESTS, 9)
    finished_anyway(space)

    assert main([command, str(space.output)]) == 1

    told = capsys.readouterr().err
    assert "generation_log.jsonl, subject candidate, row" in told
    assert "no exchange of that request" in told


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_row_that_says_something_else_than_its_response_is_named(
    space, other_rows, command, capsys
):
    unfinished(space.output)
    shutil.copy(other_rows, space.output / ROWS)
    finished_anyway(space)

    assert main([command, str(space.output)]) == 1

    assert "another text" in capsys.readouterr().err


@pytest.mark.parametrize("records", [0, 9, 17])
def test_rows_whose_exchanges_were_lost_are_asked_again(space, running, records):
    before = len(running.requests)
    unfinished(space.output)
    received = shortened(space.output / REQUESTS, records)

    space.predict(resume=True)

    assert len(running.requests) - before == len(space.rows) - received
    assert main(["verify", str(space.output)]) == 0


def test_rows_may_lose_their_exchanges_more_than_once(space, running):
    received = []
    for _ in range(2):
        unfinished(space.output)
        received.append(shortened(space.output / REQUESTS, 12))
        space.predict(resume=True)

    assert len(running.requests) == 3 * len(space.rows) - sum(received)
    assert main(["verify", str(space.output)]) == 0


def test_predictions_that_stand_without_an_exchange_are_refused(space, running):
    before = len(running.requests)
    unfinished(space.output, AFTER_THE_ANSWERS[:1])
    shortened(space.output / REQUESTS, 15)

    with pytest.raises(ArtifactError, match="does not follow from a recorded exchange"):
        space.predict(resume=True)

    assert len(running.requests) == before


def test_rows_of_another_model_are_refused_before_anything_is_asked(
    space, other_rows, running
):
    before = len(running.requests)
    unfinished(space.output)
    shutil.copy(other_rows, space.output / ROWS)

    with pytest.raises(ArtifactError, match="does not follow from a recorded exchange"):
        space.predict(resume=True)

    assert len(running.requests) == before
