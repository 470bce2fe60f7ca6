"""The measure of the audit runs real audits in processes of their own."""

import pytest

from perf.audit import audits


@pytest.mark.slow
def test_both_audits_are_measured_at_both_sizes():
    found = audits(20, 200)

    assert [(each.what, each.size) for each in found] == [
        ("reports", 2),
        ("reports", 20),
        ("rows", 20),
        ("rows", 200),
    ]
    assert all(each.peak_mib > 0 and each.cpu_s > 0 for each in found)
