"""Sensitivity: one run under the declared set, three values, scores as bounds."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import ArtifactError
from harness.report.sensitivity import render_sensitivity
from harness.run.sensitivity import sensitivity_of
from harness.scoring.sensitivity import POLICY_NAMES


@pytest.fixture(scope="module")
def payload(bent):
    return sensitivity_of(bent.output("trace"))


def score(payload, alias, policy):
    candidate = next(c for c in payload["candidates"] if c["alias"] == alias)
    return next(p for p in candidate["policies"] if p["policy"] == policy)


def bounds(payload, alias, policy):
    one = score(payload, alias, policy)
    return one["success"], one["success"] + one["unknown"]


def test_typed_is_what_the_run_reports(bent, payload):
    reported = {
        c["alias"]: c["successful_tasks"] for c in bent.report("trace")["candidates"]
    }

    assert {alias: bounds(payload, alias, "typed") for alias in reported} == {
        alias: (count, count) for alias, count in reported.items()
    }


def test_gold_is_first_alone_or_shared_under_every_policy_but_strict_002(payload):
    best = [score(payload, "gold", policy)["place"]["best"] for policy in POLICY_NAMES]

    assert best == [1] * len(POLICY_NAMES)


@pytest.mark.parametrize(
    ("alias", "policy"),
    [
        ("extras", "extra-arguments"),
        ("shouts", "strings-folded"),
        ("split-group", "groups-free"),
    ],
)
def test_only_the_rule_that_forgives_a_habit_moves_its_upper_bound(
    payload, alias, policy
):
    typed = bounds(payload, alias, "typed")
    moved = [name for name in POLICY_NAMES if bounds(payload, alias, name) != typed]

    assert moved == [policy]
    assert bounds(payload, alias, policy) == (typed[0], 50)


def test_first_broken_answer_is_the_candidates_under_strict_002(payload):
    flips = [f for f in payload["flips"] if f["policy"] == "strict-002"]

    assert {(f["candidate_alias"], f["reason_code"]) for f in flips} == {
        ("stutters", "first_response_broken")
    }
    assert 50 - len(flips) == score(payload, "stutters", "strict-002")["success"]


def test_place_moves_with_the_bounds(payload):
    typed = score(payload, "extras", "typed")["place"]
    relaxed = score(payload, "extras", "extra-arguments")["place"]

    assert typed["best"] == typed["worst"] == len(payload["candidates"])
    assert relaxed == {"best": 1, "worst": typed["worst"]}


def test_text_shows_bounds_flips_and_what_is_no_headline(payload):
    text = render_sensitivity(payload)

    assert "Diagnostic" in text
    assert "extra-arguments, extras: failure->unknown" in text
    assert "strict-002, stutters: success->failure" in text
    assert max(map(len, text.splitlines())) < 200


def test_unfinished_run_has_no_sensitivity(bent, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(bent.output("verbatim"), folder)
    (folder / "eval_manifest.json").unlink()

    with pytest.raises(ArtifactError) as caught:
        sensitivity_of(folder)

    assert caught.value.code == "eval_run_unfinished"


def _interpreters():
    """This Python, and other supported ones that can run the evaluator."""
    names = ["python3.11", "python3.12", "python3.13"]
    paths = [path for name in names if (path := shutil.which(name))]
    return [sys.executable, *filter(_runs, paths)]


def _runs(python):
    return (
        subprocess.run(
            [python, "-c", "import re2, harness.cli.main"],
            capture_output=True,
            env=_environment("0"),
            check=False,
        ).returncode
        == 0
    )


def _environment(seed):
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONHASHSEED": seed,
    }


@pytest.mark.slow
def test_other_processes_and_interpreters_give_the_same_bytes(bent, payload):
    expected = json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    outputs = {
        subprocess.run(
            [
                python,
                "-m",
                "harness.cli",
                "sensitivity",
                str(bent.output("trace")),
                "--json",
            ],
            capture_output=True,
            text=True,
            env=_environment(str(seed)),
            check=True,
        ).stdout
        for seed, python in enumerate(_interpreters())
    }

    assert outputs == {expected}
