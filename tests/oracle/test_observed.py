"""What the evaluator sees of a worker from outside, and what it makes of it."""

import subprocess
import sys
from dataclasses import replace

import pytest

from harness.oracle.contracts import OracleFault, WorkerLimits
from harness.oracle.observed import differences, observe
from tests.oracle.zoo import BACKEND, write_pack

LIMITS = WorkerLimits()
CONTAINED = {
    "own_session": True,
    "no_new_privileges": True,
    "system_calls_filtered": True,
    "capabilities": 0,
    "first_of_a_process_namespace": True,
    "cpu_s": LIMITS.cpu_s,
    "open_files": LIMITS.open_files,
    "memory_bytes": LIMITS.memory_bytes,
}


@pytest.mark.slow
def test_every_session_records_what_was_seen_of_its_worker(zoo, level):
    zoo.python("", level=level, cpu_s=7, open_files=50)
    seen = zoo.evidence["observed"]

    assert (seen["cpu_s"], seen["open_files"]) == (7, 50)
    assert seen["own_session"]
    assert seen["no_new_privileges"]
    assert seen["system_calls_filtered"] is (level != "process")
    assert seen["first_of_a_process_namespace"] is (level == "namespaces")


@pytest.mark.slow
def test_worker_that_is_looser_than_its_level_is_refused(zoo):
    undone = (
        "import os\nimport oracle_workers.birth as birth\n"
        "birth.prepare = lambda wanted, parent: "
        "lambda folder, protocol, output: os.dup2(protocol, 900)\n"
    )
    pack = write_pack(zoo.folder, backend=undone + BACKEND)

    with pytest.raises(OracleFault, match="not contained as stated") as caught:
        zoo.python("", pack=pack)

    assert "own_session" in caught.value.detail
    assert "cpu_s" in caught.value.detail


@pytest.mark.parametrize(
    ("field", "value", "levels"),
    [
        ("own_session", False, 3),
        ("no_new_privileges", False, 3),
        ("capabilities", 1 << 21, 3),
        ("capabilities", 1 << 1, 1),
        ("system_calls_filtered", False, 2),
        ("first_of_a_process_namespace", False, 1),
        ("cpu_s", -1, 3),
        ("open_files", LIMITS.open_files + 1, 3),
        ("memory_bytes", -1, 3),
    ],
)
def test_each_missing_piece_is_named_at_the_levels_that_have_it(field, value, levels):
    seen = {**CONTAINED, field: value}
    found = [
        differences(seen, level, LIMITS)
        for level in ("process", "confined", "namespaces")
    ]

    assert found == [[]] * (3 - levels) + [[field]] * levels


def test_tighter_limits_of_the_machine_are_no_difference():
    generous = replace(LIMITS, open_files=10_000)

    assert differences(CONTAINED, "namespaces", generous) == []


@pytest.mark.slow
def test_process_that_has_ended_is_not_judged():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert observe(ended.pid) == {}
    assert differences({}, "namespaces", LIMITS) == []
