"""Fingerprints: known bytes give known hashes, and only documents are inert."""

import hashlib

import pytest

from harness.benchmark.pack_tree import FINGERPRINT_V1, fingerprint_v1
from tests.benchmark.shop import loaded


def test_first_algorithm_folds_name_and_bytes_with_nul(tmp_path):
    (tmp_path / "b.txt").write_bytes(b"two\n")
    (tmp_path / "a.txt").write_bytes(b"one")
    paths = {"tree/b.txt": tmp_path / "b.txt", "tree/a.txt": tmp_path / "a.txt"}

    folded = b"tree/a.txt\0one\0tree/b.txt\0two\n\0"

    assert fingerprint_v1(paths) == "sha256:" + hashlib.sha256(folded).hexdigest()


def test_first_algorithm_orders_by_name_and_keeps_empty_files(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    paths = {"tree/x/y": tmp_path / "x", "tree/x.y": tmp_path / "x"}

    folded = b"tree/x.y\0\0tree/x/y\0\0"

    assert fingerprint_v1(paths) == "sha256:" + hashlib.sha256(folded).hexdigest()


def test_first_algorithm_of_nothing():
    assert fingerprint_v1({}) == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def _fingerprints(folder, **files):
    files = {name.replace("__", "/"): text for name, text in files.items()}
    files = {name.replace("_DOT_", "."): text for name, text in files.items()}
    manifest = {"docs": "docs"} if "docs/keep.md" in files else {}
    tree = loaded(folder, files=files, manifest=manifest).tree
    return tree.fingerprint().value, tree.fingerprint(FINGERPRINT_V1).value


def test_editing_documents_changes_only_the_first_algorithm(tmp_path):
    own, first = _fingerprints(tmp_path / "a", docs__keep_DOT_md="one")
    own_edited, first_edited = _fingerprints(tmp_path / "b", docs__keep_DOT_md="two")

    assert own == own_edited
    assert first != first_edited


def test_code_under_docs_still_counts(tmp_path):
    files = {"docs__keep_DOT_md": "one"}
    own, _ = _fingerprints(tmp_path / "a", **files, docs__x_DOT_py="A = 1\n")
    edited, _ = _fingerprints(tmp_path / "b", **files, docs__x_DOT_py="A = 2\n")

    assert own != edited


def test_undeclared_docs_count(tmp_path):
    own, _ = _fingerprints(tmp_path / "a", docs__other_DOT_md="one")
    edited, _ = _fingerprints(tmp_path / "b", docs__other_DOT_md="two")

    assert own != edited


def test_caches_of_the_interpreter_do_not_count(tmp_path):
    plain, first = _fingerprints(tmp_path / "a")
    cached, first_cached = _fingerprints(tmp_path / "b", __pycache____x_DOT_pyc="x")

    assert (plain, first) == (cached, first_cached)


def test_declared_file_under_docs_is_refused(tmp_path):
    from tests.benchmark.shop import problems_of

    problems = problems_of(
        tmp_path,
        manifest={"docs": "docs", "system_prompt": "x", "held_out": "docs/held.yaml"},
        files={"docs/held.yaml": "version: '1'\n"},
    )

    assert any("under docs" in problem for problem in problems)


def test_unknown_algorithm_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="unknown fingerprint algorithm"):
        loaded(tmp_path).tree.fingerprint("bfcl-pack-fingerprint-v2")
