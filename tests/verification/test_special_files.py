"""A pipe or a folder in the place of a run's file is refused, never waited for."""

import os

import pytest

from harness.causes import EXIT_INTERRUPTED
from harness.cli.main import main
from harness.evidence.task_table import read_task_rows

COMMANDS = {
    "verify": ["verify", "{run}"],
    "replay": ["replay", "{run}"],
    "rescore": ["rescore", "{run}", "--output", "{new}"],
    "sensitivity": ["sensitivity", "{run}"],
    "audit": ["audit", "{run}"],
    "explain": ["explain", "{run}", "{task}"],
    "seal": ["seal", "{run}", "--output", "{new}"],
    "compare": ["compare", "{run}", "{other}"],
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_with_a_word(command, make, run, executable_run, tmp_path):
    task = next(read_task_rows(run / "eval_task_results.parquet")).task_id
    for file in sorted(run.iterdir()):
        new = tmp_path / f"new-{file.name}"
        words = [
            word.format(run=run, new=new, other=executable_run, task=task)
            for word in COMMANDS[command]
        ]
        aside = file.rename(tmp_path / "aside")
        make(file)

        assert main(words) in range(EXIT_INTERRUPTED)

        (file.rmdir if file.is_dir() else file.unlink)()
        aside.rename(file)
