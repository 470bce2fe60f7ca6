"""The drill's endpoint: there, away, and there again at the same place."""

import socket

import anyio
import pytest

from harness.drill.endpoint import DrillEndpoint, connected
from harness.errors import UsageError


def is_listening(port):
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_line_that_is_cut_refuses_and_comes_back_at_the_same_place():
    seen = []

    async def play():
        async with connected(DrillEndpoint(None, {})) as line:
            port = line.port
            seen.append(is_listening(port))
            await line.cut()
            seen.append(is_listening(port))
            await line.open()
            seen.append(is_listening(port))
            seen.append(line.port == port)

    anyio.run(play)

    assert seen == [True, False, True, True]


def test_error_of_a_run_comes_through_as_itself():
    async def play():
        async with connected(DrillEndpoint(None, {})):
            raise UsageError("eval_cli_invalid", "no")

    with pytest.raises(UsageError):
        anyio.run(play)
