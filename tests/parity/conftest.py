"""Leaves out the parity modules whose fixtures are not at hand."""

from pathlib import Path

import pytest

from tests.parity.folders import MODULE_OF_FOLDER, folders_in

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def realdata(request):
    """The file of `--realdata`; tests that ask for it are left out without one."""
    return request.config.getoption("realdata")


def pytest_collection_modifyitems(config, items):
    present = folders_in(config.option.parity_fixtures)
    absent = {
        module for folder, module in MODULE_OF_FOLDER.items() if folder not in present
    }
    without_realdata = config.getoption("realdata") is None
    left_out = [
        item
        for item in items
        if item.path.parent == HERE
        and (
            item.path.name in absent
            or (without_realdata and "realdata" in getattr(item, "fixturenames", ()))
        )
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
