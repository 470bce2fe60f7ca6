"""Whole runs with a hostile pack: benchmark, run folder and key, level by level."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import FairtrialError
from tests.hostile.runs import Published
from tests.hostile.tricks import LEVELS, read_tricks
from tests.run.gold_server import CountingControl

ROOT = Path(__file__).parent.parent.parent
NAMES = (
    "reads-the-benchmark",
    "reads-the-run-folder",
    "searches-for-a-key",
    "reads-the-evaluators-environment",
    "changes-the-benchmark",
    "empties-the-benchmark",
    "changes-a-date",
    "changes-the-run-folder",
    "deletes-outside",
)
TRICKS = {trick.name: trick for trick in read_tricks() if trick.name in NAMES}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The published pack; runs use and may spoil its folders one after the other."""
    return Published(tmp_path_factory.mktemp("hostile-runs"), TRICKS.values())


@pytest.fixture
def hostile(original):
    """The published pack as it was published."""
    kept = original.folder / "kept"
    shutil.copytree(original.folder / "benchmark", kept)
    yield original
    shutil.rmtree(original.folder / "benchmark")
    kept.rename(original.folder / "benchmark")
    shutil.rmtree(original.output, ignore_errors=True)


@pytest.fixture
def gold(hostile):
    """A served gold candidate that counts its requests."""
    control = CountingControl(hostile.folder / "benchmark")
    with control.served() as server:
        control.url = server.url
        yield control


def workers(output):
    """What every episode of a run keeps of its worker."""
    lines = (output / "tool_trace_cache.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [
        record["payload"]["episode"]["execution"]["worker"]
        for record in records
        if record["record_type"] == "completion"
    ]


@pytest.mark.parametrize("level", ["process", "confined"])
@pytest.mark.parametrize("name", NAMES)
def test_run_holds_or_notices(hostile, gold, sandbox, monkeypatch, name, level):
    if not sandbox[level]["available"]:
        pytest.skip(sandbox[level]["detail"])
    monkeypatch.setenv("FAIRTRIAL_HOSTILE_KEY", "planted-in-the-evaluator")
    trick = TRICKS[name]
    config = hostile.config(
        gold.url, trick=name, level=level, key="FAIRTRIAL_HOSTILE_KEY"
    )
    held = trick.is_held_at(level)
    if trick.noticed and not held:
        with pytest.raises(FairtrialError) as caught:
            hostile.run(config)

        assert caught.value.code == trick.noticed
        assert not (hostile.output / "eval_manifest.json").exists()
        return
    before = hostile.table.read_bytes()

    hostile.run(config)

    text = (hostile.output / "tool_trace_cache.jsonl").read_text()
    assert ('"escaped":true' in text) is ("report" in trick.shows and not held)
    assert hostile.table.read_bytes() == before


@pytest.mark.parametrize("level", LEVELS)
def test_applied_containment_is_in_the_manifest_and_with_every_worker(
    hostile, gold, sandbox, level
):
    if not sandbox[level]["available"]:
        pytest.skip(sandbox[level]["detail"])
    limits = {"cpu_s": 11, "memory_bytes": 500 << 20, "open_files": 33}
    changes = {("limits", "worker", name): value for name, value in limits.items()} | {
        ("eval", "trials"): 3
    }

    hostile.run(hostile.config(gold.url, level=level, changes=changes))

    manifest = json.loads((hostile.output / "eval_manifest.json").read_text())
    applied = manifest["containment"]
    kept = workers(hostile.output)
    assert applied["level"] == level
    assert applied["host_mode"] == "shared"
    assert {n: applied["limits"][n]["value"] for n in limits} == limits
    assert all("enforced" in limit for limit in applied["limits"].values())
    assert [worker["containment"] for worker in kept] == [applied] * 3
    for worker in kept:
        assert {name: worker["observed"][name] for name in limits} == limits
        assert worker["observed"]["system_calls_filtered"] is (level != "process")


REFUSING = """
import sys
from harness.cli.main import main
from oracle_workers import seccomp, syscalls

syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install((sys.argv[1],))
raise SystemExit(main(["run", sys.argv[2]]))
"""


@pytest.mark.parametrize(
    ("call", "level", "missing"),
    [
        ("landlock_create_ruleset", "confined", "landlock"),
        ("landlock_restrict_self", "namespaces", "landlock"),
        ("unshare", "namespaces", "namespaces"),
    ],
)
def test_level_that_cannot_be_had_is_refused_before_the_first_request(
    hostile, gold, call, level, missing
):
    hostile.config(gold.url, level=level)

    done = subprocess.run(
        [sys.executable, "-c", REFUSING, call, str(hostile.folder / "eval.yaml")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )

    assert done.returncode == 3, done.stderr
    assert "eval_isolation_unavailable" in done.stderr
    assert f"{missing} cannot be had" in done.stderr
    assert gold.number == 0
