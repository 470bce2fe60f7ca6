"""A pipe or a folder in the place of a file of a predict run is never waited for."""

import os

import pytest

from harness.causes import EXIT_INTERRUPTED
from tests.predict.asking import Workspace, right_or_vectors, run_command, server


@pytest.mark.slow
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_command_ends_with_a_word(make, tmp_path):
    with server(right_or_vectors) as endpoint:
        space = Workspace(tmp_path, url=endpoint.url)
        space.predict()
        files = sorted(path for path in space.output.rglob("*") if path.is_file())
        for file in files:
            aside = file.rename(tmp_path / "aside")
            make(file)

            assert run_command(space, "--resume") in range(EXIT_INTERRUPTED)

            (file.rmdir if file.is_dir() else file.unlink)()
            aside.rename(file)
