"""Declared hashes are compared with the files, checkpoints with every file."""

import hashlib

import pytest

from harness.errors import SourceError
from harness.predictions.digests import (
    file_sha256,
    is_sha256,
    require_sha256,
    verify_checkpoint,
)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 64, True),
        ("A" * 64, False),
        ("a" * 63, False),
        ("sha256:" + "a" * 64, False),
        (None, False),
    ],
)
def test_hash_is_64_lower_case_digits(text, expected):
    assert is_sha256(text) == expected


def test_declared_hash_of_the_file_is_returned(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"x")

    found = require_sha256(path, sha256(b"x"), by="the caller")

    assert found == file_sha256(path) == sha256(b"x")


def test_another_file_is_refused_with_both_hashes(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"x")

    with pytest.raises(SourceError) as refused:
        require_sha256(path, sha256(b"y"), by="--manifest-sha256")

    (violation,) = refused.value.violations
    assert (violation.code, violation.expected, violation.actual) == (
        "eval_predictions_drift",
        sha256(b"y"),
        sha256(b"x"),
    )


def test_checkpoint_with_the_declared_files_passes(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/model.bin").write_bytes(b"weights")
    (tmp_path / "notes.txt").write_bytes(b"not declared")

    verify_checkpoint(tmp_path, {"sub/model.bin": sha256(b"weights")})


def test_every_problem_of_a_checkpoint_is_named(tmp_path):
    (tmp_path / "changed").write_bytes(b"other")
    declared = {
        "absent": sha256(b"a"),
        "changed": sha256(b"weights"),
        "../changed": sha256(b"other"),
        "/etc/hostname": sha256(b"x"),
        "": sha256(b"x"),
    }

    with pytest.raises(SourceError) as refused:
        verify_checkpoint(tmp_path, declared)

    assert len(refused.value.violations) == len(declared)
    assert refused.value.code == "eval_predictions_drift"


def test_checkpoint_that_declares_nothing_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no file is declared"):
        verify_checkpoint(tmp_path, {})
