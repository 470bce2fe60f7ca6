"""Ten kills at seeded moments over one run with three trials."""

import pytest

from tests.run.soak import soak


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_run_killed_ten_times_ends_like_an_undisturbed_one(tmp_path, benchmark):
    came = soak(tmp_path, benchmark, pack="library", trials=3, kills=10, seed=7)

    assert came.kills > 0
    assert came.passed, came
