"""`fairtrial score`: what it prints and with which status it ends."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.score import CONTRACTS

PUBLISHED = Path(__file__).parent.parent / "fixtures/action-ir/published"
MANIFEST = PUBLISHED / "manifest_sample.jsonl"
PREDICTIONS = PUBLISHED / "predictions_sample_candidate-v2.jsonl"


def score(tmp_path, *words, manifest=MANIFEST, predictions=PREDICTIONS):
    return main(
        [
            *("score", "action-ir", "--manifest", str(manifest)),
            *("--predictions", str(predictions)),
            *("--output", str(tmp_path / "out"), *words),
        ]
    )


def test_figures_over_nothing_are_shown_as_not_measured(tmp_path, capsys):
    status = score(tmp_path)

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0].startswith("7 rows scored")
    assert [line for line in lines if "false action" in line] == [
        f"  {'false action':32} not measured"
    ]
    assert f"  {'AST exact match':32} 0.8571  6/7" in lines


def test_json_holds_measures_and_hashes(tmp_path, capsys):
    status = score(tmp_path, "--json")

    payload = json.loads(capsys.readouterr().out)
    data = (tmp_path / "out/aggregate.json").read_bytes()
    assert status == 0
    assert payload["aggregate_sha256"] == hashlib.sha256(data).hexdigest()
    assert payload["measures"]["false_action"] is None
    assert "false_action" in payload["not_measured"]
    assert payload["measures"]["ast_exact_match"] == 6 / 7
    assert json.loads(data)["false_action"]["value"] == 0.0


def test_declared_manifest_hash_is_compared(tmp_path, capsys):
    digest = hashlib.sha256(MANIFEST.read_bytes()).hexdigest()

    assert score(tmp_path, "--manifest-sha256", digest.upper()) == 0
    assert score(tmp_path, "--manifest-sha256", "0" * 64) == 2
    assert "eval_output_exists" in capsys.readouterr().err


def test_other_manifest_is_a_refusal_of_the_source(tmp_path, capsys):
    assert score(tmp_path, "--manifest-sha256", "0" * 64) == 3
    assert capsys.readouterr().err.startswith("eval_predictions_drift")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["manifest", "predictions"])
def test_absent_file_is_a_usage_error(tmp_path, capsys, option):
    assert score(tmp_path, **{option: tmp_path / "absent"}) == 2
    assert f"--{option}" in capsys.readouterr().err


def test_broken_line_is_named_with_its_number(tmp_path, capsys):
    broken = tmp_path / "p.jsonl"
    broken.write_bytes(PREDICTIONS.read_bytes() + b"\n")

    assert score(tmp_path, predictions=broken) == 3
    error = capsys.readouterr().err
    assert error.startswith("eval_predictions_invalid")
    assert "p.jsonl:8" in error


def test_rows_that_do_not_join_are_named(tmp_path, capsys):
    fewer = tmp_path / "p.jsonl"
    fewer.write_bytes(PREDICTIONS.read_bytes().split(b"\n", 1)[1])

    assert score(tmp_path, predictions=fewer) == 3
    assert "missing_prediction_row" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["score"],
        ["score", "no-such-contract"],
        ["score", "action-ir"],
        ["score", "action-ir", "--manifest-sha256", "ab"],
    ],
)
def test_usage_error_has_the_common_form(words, capsys):
    with pytest.raises(SystemExit) as done:
        main(words)

    assert done.value.code == 2
    assert capsys.readouterr().err.startswith("eval_cli_invalid: ")


@pytest.mark.parametrize("contract", CONTRACTS)
def test_help_of_a_contract_shows_its_arguments(contract, capsys):
    with pytest.raises(SystemExit) as done:
        main(["score", contract, "--help"])

    assert done.value.code == 0
    assert "--output" in capsys.readouterr().out


def test_help_loads_no_contract():
    program = (
        "import sys\nfrom harness.cli.main import main\n"
        "try:\n    main(['score', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    loaded = set(done.stderr.split())
    assert {f"harness.cli.{each.module}" for each in CONTRACTS.values()} & loaded == (
        set()
    )
