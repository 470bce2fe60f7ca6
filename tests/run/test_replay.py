"""Replay: the folder alone gives the same numbers, anywhere."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.errors import ArtifactError
from harness.run.replay import replay_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory, benchmark, controls):
    from tests.run.conftest import Bench

    bench = Bench(tmp_path_factory.mktemp("finished"), benchmark, controls)
    bench.run(bench.config("gold", "mixture"))
    return bench.output()


@pytest.fixture
def moved(finished, tmp_path):
    """A copy of the run folder, alone in another place."""
    folder = tmp_path / "elsewhere" / "copy"
    shutil.copytree(finished, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
        {"LC_ALL": "C", "LANG": "C", "PYTHONHASHSEED": "4242"},
        {"PYTHONUTF8": "0", "LC_ALL": "POSIX", "TZ": "America/St_Johns"},
    ],
)
def test_replay_elsewhere_gives_equal_hashes(moved, environment):
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "replay", str(moved), "--json"],
        capture_output=True,
        text=True,
        cwd=moved.parent,
        env={"PATH": os.environ["PATH"], **environment},
        check=False,
    )
    stated = json.loads((moved / "eval_manifest.json").read_text())

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["equal"] is True
    assert answer["aggregate_hashes"] == stated["candidate_aggregates"]


def test_replay_writes_nothing(moved):
    before = {p.name: p.read_bytes() for p in moved.iterdir()}

    replay_run(moved)

    assert {p.name: p.read_bytes() for p in moved.iterdir()} == before


def test_edited_number_is_named_with_its_place(moved):
    path = moved / "eval_report.json"
    report = json.loads(path.read_text())
    report["candidates"][0]["successful_tasks"] += 1
    path.write_text(json.dumps(report))

    replayed = replay_run(moved)

    assert [each.where for each in replayed.differences] == [
        "eval_report.json.candidates[0].successful_tasks"
    ]


def test_unfinished_folder_is_not_replayed(moved):
    (moved / "eval_manifest.json").unlink()

    with pytest.raises(ArtifactError) as caught:
        replay_run(moved)

    assert caught.value.code == "eval_run_unfinished"


def test_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(ArtifactError) as caught:
        replay_run(tmp_path)

    assert caught.value.code == "eval_artifact_invalid"
