"""Versions come from what is installed; what is absent is left out."""

import platform
from importlib import metadata

from harness.engines.runtime_versions import (
    gpu_names,
    operating_system,
    runtime_versions,
)


def test_versions_name_python_and_installed_packages_only():
    assert runtime_versions(["pytest", "no-such-distribution"]) == {
        "python": platform.python_version(),
        "pytest": metadata.version("pytest"),
    }


def test_operating_system_names_the_machine():
    assert operating_system().endswith(platform.machine())


def test_gpus_are_those_that_the_driver_lists(tmp_path):
    for number, model in enumerate(("One H1", "Two H2")):
        folder = tmp_path / f"0000:0{number}:00.0"
        folder.mkdir()
        (folder / "information").write_text(f"Model: \t\t {model}\nIRQ: 7\n")

    assert gpu_names(tmp_path) == ("One H1", "Two H2")


def test_a_machine_without_the_driver_has_no_gpus(tmp_path):
    assert gpu_names(tmp_path / "absent") == ()
