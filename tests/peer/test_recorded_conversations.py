"""A teacher-forced run against llama.cpp's server and a real, very small model.

The server takes the recorded history as it is sent: calls, results and reasoning. What
the model makes of it does not matter here.
"""

import json

import pytest

from tests.peer.serving import MODEL, fairtrial, require_packages, served
from tests.run.teacher_forced.conversations import (
    ASKED,
    CONVERSATIONS,
    SCORED,
    write_dataset,
)

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.timeout(900)]

PASSES = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with a finished run in `run`."""
    require_packages()
    folder = tmp_path_factory.mktemp("peer")
    write_dataset(folder / "rows.jsonl", CONVERSATIONS)
    config = folder / "eval.yaml"
    with served(folder / "server.log") as base_url:
        made = fairtrial(
            *("config", "init", "--kind", "mlperf-agentic", "--model", MODEL),
            *("--dataset", str(folder / "rows.jsonl"), "--base-url", base_url),
            *("--output", str(config)),
        )
        assert made.returncode == 0, made.stderr
        text = config.read_text()
        for old, new in (
            ("repeats: 1", f"repeats: {PASSES}"),
            ("salt: null", 'salt: "peer"'),
            ("max_tokens: 1024", "max_tokens: 24"),
        ):
            assert old in text
            text = text.replace(old, new)
        config.write_text(text)
        done = fairtrial("run", str(config), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def report(folder):
    return json.loads((folder / "run" / "eval_report.json").read_text())


def test_server_answers_every_turn_of_every_pass(folder):
    found = report(folder)

    assert found["asked"]["turns"]["answered"] == PASSES * ASKED
    assert found["scores"]["turns"]["observed"] == PASSES * SCORED
    assert found["asked"]["tokens"]["completion_tokens"]["max"] <= 24


def test_folder_scores_and_replays_without_the_server(folder):
    run = folder / "run"
    scored = fairtrial(
        *("score", "mlperf-agentic", "--dataset", str(folder / "rows.jsonl")),
        *("--report-dir", str(run), "--output", str(folder / "scored")),
    )
    replayed = fairtrial("replay", str(run))

    assert scored.returncode == 0, scored.stderr
    assert replayed.returncode == 0, replayed.stderr
    ours = (run / "scores.json").read_bytes()
    assert (folder / "scored" / "scores.json").read_bytes() == ours
