"""What a machine offers, found out without restricting the one who asks."""

import os
import socket

from harness.oracle.sandbox import detect_sandbox


def test_findings_name_every_level_and_what_is_missing():
    levels = detect_sandbox()["levels"]

    assert list(levels) == ["confined", "namespaces", "process"]
    for level, found in levels.items():
        if found["available"]:
            assert found["applied"]["level"] == level
        else:
            assert found["missing"]
            assert found["detail"]


def test_asking_restricts_nothing_here():
    detect_sandbox()

    assert os.listdir("/")
    socket.socket().close()
