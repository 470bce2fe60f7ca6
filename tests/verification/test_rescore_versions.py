"""Rescoring is a function of evidence and policy: any process, any supported Python."""

import subprocess
import sys

import pytest

from tests.verification.runs import ROOT
from tests.verification.test_verify_bundle import INTERPRETERS

ALONE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.dont_write_bytecode = True
from pathlib import Path
from harness.canonical import hash_bytes
from harness.evidence.artifacts import artifact_bytes
from harness.run.finished import open_finished
from harness.run.policies import named_policy
from harness.run.rescore import score_again

with open_finished(Path(sys.argv[1])) as run:
    named = named_policy("strict-002", run.evidence.config.scoring_policy)
    again = score_again(run, named, lambda row: None, lambda *_: b"page")
print(*(hash_bytes(artifact_bytes(each)) for each in (again.record, again.report)))
"""


def rescored_alone(python, folder):
    done = subprocess.run(
        [python, "-I", "-S", "-c", ALONE, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout or done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", INTERPRETERS)
def test_record_and_report_are_the_same_bytes(version, run):
    # Without the table, which needs pyarrow, the recorded verdicts are worked out.
    (run / "eval_task_results.parquet").unlink()

    here = rescored_alone(sys.executable, run)

    assert here.startswith("sha256:")
    assert rescored_alone(INTERPRETERS[version], run) == here
