"""Versions come from what is installed; what is absent is left out."""

import platform
from importlib import metadata

from harness.engines.runtime_versions import operating_system, runtime_versions


def test_versions_name_python_and_installed_packages_only():
    assert runtime_versions(["pytest", "no-such-distribution"]) == {
        "python": platform.python_version(),
        "pytest": metadata.version("pytest"),
    }


def test_operating_system_names_the_machine():
    assert operating_system().endswith(platform.machine())
