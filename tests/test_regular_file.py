"""What somebody named is read where it is a regular file, and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.regular_file import read_regular_file, require_file
from harness.strict_yaml import load_yaml


@pytest.fixture(params=["pipe", "device", "folder", "absent", "link to nothing"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A path that leads to no regular file."""
    path: Path = tmp_path / "named"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "link to nothing":
        path.symlink_to(tmp_path / "nothing")
    return path


def test_what_is_no_file_is_an_error_of_the_machine(no_file: Path) -> None:
    with pytest.raises(OSError, match="named"):
        read_regular_file(no_file)


def test_what_is_no_file_is_no_strict_yaml_either(no_file: Path) -> None:
    with pytest.raises(OSError, match="named"):
        load_yaml(no_file)


def test_option_that_names_no_file_is_a_usage_error(no_file: Path) -> None:
    with pytest.raises(UsageError) as refused:
        require_file(no_file, "--rows")

    assert refused.value.code == "eval_cli_invalid"


def test_kind_of_a_special_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UsageError) as refused:
        require_file(tmp_path / "pipe", "--rows")

    assert refused.value.violations[0].actual == "Not a regular file"


def test_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")

    assert read_regular_file(tmp_path / "link") == b"text"
