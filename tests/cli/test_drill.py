"""`fairtrial drill` as a user calls it; what it finds is tested in tests/drill."""

import re
import shutil

import pytest

from harness.benchmark.bundled import bundled_pack
from harness.cli.main import main
from harness.oracle.sandbox import detect_sandbox


@pytest.fixture
def strictest_level():
    levels = detect_sandbox()["levels"]
    names = ("namespaces", "confined", "process")
    return next(name for name in names if levels[name]["available"])


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_pack_of_ones_own_is_drilled_at_the_strictest_level(
    tmp_path, capsys, strictest_level
):
    pack = tmp_path / "pack"
    shutil.copytree(bundled_pack("library"), pack)
    shutil.rmtree(pack / "docs")
    manifest = pack / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("docs: docs\n", ""))

    words = ["--episodes", "1", "--seed", "2", "--level", strictest_level]
    status = main(["drill", "--pack", str(pack), *words])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("injected \\ booked")
    assert re.fullmatch(r"drill: injected [1-9]\d+, off the diagonal 0", lines[-1])
    named = f"Cannot be injected at level {strictest_level}:" in lines
    assert named is (strictest_level != "process")
    assert status == 0


def test_output_that_exists_is_refused(tmp_path, capsys):
    status = main(["drill", "--output", str(tmp_path)])

    assert status == 2
    assert "eval_output_exists" in capsys.readouterr().err


def test_unknown_pack_is_refused(capsys):
    assert main(["drill", "--pack", "no-such-pack"]) == 2
    assert "there is no such pack" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-3", "many"])
def test_number_of_episodes_that_is_none_is_refused(count, capsys):
    with pytest.raises(SystemExit) as refused:
        main(["drill", "--episodes", count])

    assert refused.value.code == 2
