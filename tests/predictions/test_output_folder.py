"""An output folder is there whole or not at all."""

import pytest

from harness.errors import UsageError
from harness.predictions.output_folder import new_folder


def test_folder_appears_with_its_files(tmp_path):
    output = tmp_path / "deep" / "out"

    with new_folder(output) as folder:
        (folder / "a").write_text("x")

        assert not output.exists()

    assert (output / "a").read_text() == "x"
    assert [path.name for path in output.parent.iterdir()] == ["out"]


def fill(output, meanwhile):
    """Write one file into a new folder and let something happen meanwhile."""
    with new_folder(output) as folder:
        (folder / "a").write_text("x")
        meanwhile()


def test_failure_leaves_nothing(tmp_path):
    with pytest.raises(KeyError):
        fill(tmp_path / "out", lambda: {}["absent"])

    assert list(tmp_path.iterdir()) == []


def test_existing_name_is_refused_even_a_dangling_one(tmp_path):
    (tmp_path / "out").symlink_to("nowhere")

    with pytest.raises(UsageError) as refused:
        fill(tmp_path / "out", list)

    assert refused.value.code == "eval_output_exists"


def test_name_taken_meanwhile_is_not_replaced(tmp_path):
    output = tmp_path / "out"

    with pytest.raises(UsageError):
        fill(output, output.mkdir)

    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert list(output.iterdir()) == []
