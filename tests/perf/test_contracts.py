"""The measure of the contracts scores real files and prints a ratio."""

import json

import pytest

from perf.contracts import CONTRACTS, bytes_per_row, main, rows_per_cpu_s


@pytest.mark.parametrize("name", CONTRACTS)
def test_made_up_rows_are_scored(name, tmp_path):
    contract = CONTRACTS[name]
    contract.write(tmp_path, 60)

    contract.score(tmp_path, tmp_path / "out")

    assert any((tmp_path / "out").iterdir())


def test_action_ir_rows_hold_right_wrong_and_broken_ones(tmp_path):
    contract = CONTRACTS["action-ir"]
    contract.write(tmp_path, 60)
    contract.score(tmp_path, tmp_path / "out")

    found = json.loads((tmp_path / "out/aggregate.json").read_text())

    assert 0.8 < found["ast_exact_match"]["value"] < 1
    assert found["parse_failure"]["numerator"] > 0
    assert found["truncation"]["numerator"] > 0
    assert found["failure_counts"]["missing_field"] > 0


def test_mlperf_run_holds_right_wrong_and_absent_answers(tmp_path):
    contract = CONTRACTS["mlperf-agentic"]
    contract.write(tmp_path, 60)
    contract.score(tmp_path, tmp_path / "out")

    found = json.loads((tmp_path / "out/scores.json").read_text())

    scores = {row["score"] for row in found["per_turn"]}
    assert {0.0, 1.0} < scores
    assert found["turns"]["missing"] == 1
    assert set(found["domains"]) == {"coding", "workflow"}


@pytest.mark.slow
def test_memory_grows_with_the_rows():
    assert 0 < bytes_per_row(CONTRACTS["mlperf-agentic"], 1000) < 5000


@pytest.mark.slow
def test_bound_on_memory_fails(monkeypatch, capsys):
    words = ["contracts.py", "--rows", "60", "-n", "1", "--max-bytes", "1"]
    monkeypatch.setattr("sys.argv", [*words, "mlperf-agentic"])

    assert main() == 1
    assert "bytes a row" in capsys.readouterr().out


def test_speed_is_rows_over_cpu_time(tmp_path):
    assert rows_per_cpu_s(CONTRACTS["action-ir"], 60, 1) > 0


def test_unreachable_factor_fails(monkeypatch, capsys):
    words = ["contracts.py", "--rows", "60", "-n", "1", "--min-factor", "1e9", "--json"]
    monkeypatch.setattr("sys.argv", [*words, "action-ir"])

    assert main() == 1
    assert json.loads(capsys.readouterr().out)["action-ir"]["factor"] > 0
