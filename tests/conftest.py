"""Settings that every test shares."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.parity.folders import DEFAULT_ROOT, folders_in, take_fixtures_option

# The machines that run this suite share their cores, so a slow example says
# nothing about the code under test.
settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

# A shell starts what it puts aside with Ctrl-C ignored, and so would every process that
# a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    group = parser.getgroup("fairtrial")
    group.addoption(
        "--parity-fixtures",
        type=Path,
        default=DEFAULT_ROOT,
        metavar="DIR",
        help="folder of parity fixtures, what it lacks is deselected; "
        "`--fixtures DIR` says the same",
    )
    group.addoption(
        "--realdata",
        type=Path,
        default=None,
        metavar="FILE",
        help="recorded conversations that mlperf-agentic/realdata is about",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    take_fixtures_option(config)
    root = config.option.parity_fixtures
    if not folders_in(root):
        raise pytest.UsageError(f"--fixtures {root}: holds none of the parity folders")
    realdata = config.option.realdata
    if realdata is not None and not realdata.is_file():
        raise pytest.UsageError(f"--realdata {realdata}: is no file")
