"""A predict run over a server that it starts, watches and stops."""

import json
import sys

import pytest

from harness.errors import EngineError
from tests.engines import small_server
from tests.predict.asking import Workspace

pytestmark = pytest.mark.slow


def started(tmp_path, *options, **changes):
    """A workspace whose engine starts the small server."""
    space = Workspace(tmp_path, url="http://127.0.0.1:1/v1")
    space.document["engines"]["main"] = {
        "kind": "vllm_server",
        "model": "tiny",
        "model_identity": "local:tiny@main",
        "checkpoint_sha256": None,
        "dtype": "auto",
        "command": [
            *(sys.executable, small_server.__file__, "{port}", "{model}"),
            *options,
        ],
        "port": None,
        "start_timeout_s": 20.0,
        "stop_timeout_s": 5.0,
        "max_in_flight": 2,
        "timeout_s": 10.0,
        "max_retries": 0,
        **changes,
    }
    return space


def record_of(space):
    return json.loads((space.output / "eval_record.json").read_text())


def test_answers_come_from_the_started_server_and_its_log_is_kept(tmp_path):
    space = started(tmp_path)

    space.predict()

    assert space.lines()[0]["raw"] == "TEXT: ABOUT BILLING, 0"
    assert (space.output / "server-main.log").exists()


def test_finished_folder_starts_no_server(tmp_path):
    space = started(tmp_path)
    space.predict()
    log = space.output / "server-main.log"
    before = log.read_bytes()

    assert space.predict().replayed
    assert log.read_bytes() == before


def test_server_that_does_not_start_leaves_a_failed_record(tmp_path):
    space = started(tmp_path, "stillborn")

    with pytest.raises(EngineError, match="eval_engine_start_failed"):
        space.predict()

    record = record_of(space)
    assert record["status"] == "failed"
    assert record["error"]["code"] == "eval_engine_start_failed"


def test_server_that_dies_in_the_run_leaves_no_score(tmp_path):
    space = started(tmp_path, "fatal")

    with pytest.raises(EngineError, match="eval_engine_failed"):
        space.predict()

    assert not (space.output / "scores").exists()
    assert record_of(space)["status"] == "failed"
