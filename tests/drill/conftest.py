"""One small drill, kept on disk and read by all tests of this room."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.benchmark.pack import load_pack
from harness.benchmark.tables import read_rows
from harness.cli.main import main
from harness.drill.layout import layouts

EPISODES = 150
SEED = 5


@dataclass(frozen=True)
class Drilled:
    """What the command left behind."""

    status: int
    report: dict
    folder: Path

    def round_folder(self, number):
        return self.folder / f"round-{number:03}-run"


@pytest.fixture(scope="session")
def drilled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drill") / "kept"
    capture = folder.with_suffix(".json")
    with capture.open("w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        words = ["--episodes", str(EPISODES), "--seed", str(SEED), "--json"]
        status = main(["drill", *words, "--output", str(folder)])
    return Drilled(status, json.loads(capture.read_text()), folder)


@pytest.fixture(scope="session")
def tasks(drilled):
    """The layouts of the library's tasks."""
    rows = list(read_rows(drilled.folder / "benchmark" / "benchmark.parquet"))
    return layouts(load_pack(drilled.folder / "pack"), rows)
