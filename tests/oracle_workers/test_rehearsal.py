"""The rehearsal leaves nothing behind but warm code."""

import os

from oracle_workers import rehearsal


def test_rehearsal_leaves_no_descriptor_and_no_output(capfd):
    before = os.listdir("/proc/self/fd")

    rehearsal.run()

    assert (os.listdir("/proc/self/fd"), capfd.readouterr()) == (before, ("", ""))
