"""`verify` and `seal` as people call them: statuses, text, JSON."""

import json

import pytest

from harness.cli.main import main
from harness.evidence.manifest import MANIFEST_FILE
from tests.verification.runs import flip


def called(capsys, *words):
    """Call the command line; return its status, stdout and stderr."""
    status = main([str(word) for word in words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_verify_prints_counts_and_the_result(executable_run, capsys):
    status, out, err = called(capsys, "verify", executable_run)

    assert (status, err) == (0, "")
    assert " 6  episodes scored again\n" in out
    assert out.splitlines()[-1] == "result: intact"


def test_verify_names_damage_and_answers_no(run, capsys):
    flip(run / "tool_trace_cache.jsonl", 100, 1)

    status, out, err = called(capsys, "verify", run, "--json")

    assert status == 1
    answer = json.loads(out)
    assert answer["intact"] is False
    assert answer["violations"][0]["where"] == (
        "tool_trace_cache.jsonl, record 1, byte offset 0"
    )
    assert "tool_trace_cache.jsonl, record 1" in err


def test_text_of_damage_moves_no_cursor(run, capsys):
    path = run / "eval_report.json"
    path.write_bytes(path.read_bytes().replace(b'"trace', b'"\\u001b[2J\\ud800', 1))

    status, out, err = called(capsys, "verify", run)

    assert status == 1
    assert "\x1b" not in out + err


def test_verify_of_an_unfinished_run_is_refused(run, capsys):
    (run / MANIFEST_FILE).unlink()

    status, _, err = called(capsys, "verify", run)

    assert status == 7
    assert err.startswith("eval_run_unfinished")


def test_seal_and_verify(executable_run, tmp_path, capsys):
    path = tmp_path / "run.bundle"

    sealed = called(capsys, "seal", executable_run, "--output", path, "--json")
    verified = called(capsys, "verify", path, "--json")

    assert (sealed[0], verified[0]) == (0, 0)
    said, answer = json.loads(sealed[1]), json.loads(verified[1])
    assert said["bundle_hash"] == answer["bundle_hash"]
    assert said["aggregate_hashes"] == answer["aggregate_hashes"]
    assert said["withheld_rows"] == {}


def test_seal_says_what_it_withheld(executable_run, tmp_path, capsys):
    path = tmp_path / "run.bundle"

    status, out, _ = called(
        capsys, "seal", executable_run, "--output", path, "--redact", "bodies"
    )

    assert status == 0
    assert "rows of candidate_io_cache.jsonl are digests" in out


@pytest.mark.parametrize("what", ["everything", "task:nobody"])
def test_seal_refuses_what_it_cannot_withhold(what, executable_run, tmp_path, capsys):
    path = tmp_path / "run.bundle"

    status, _, err = called(
        capsys, "seal", executable_run, "--output", path, "--redact", what
    )

    assert status == 2
    assert "--redact" in err
    assert not path.exists()


def test_seal_keeps_an_existing_file(executable_run, tmp_path, capsys):
    path = tmp_path / "run.bundle"
    path.write_text("mine")

    status, _, _ = called(capsys, "seal", executable_run, "--output", path)

    assert (status, path.read_text()) == (2, "mine")
