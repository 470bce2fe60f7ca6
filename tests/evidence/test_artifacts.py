"""An artifact is written once, whole, and has one text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import hash_file
from harness.errors import ArtifactError
from harness.evidence.artifacts import (
    artifact_bytes,
    read_json_artifact,
    write_json_artifact,
    write_once,
)

TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "eval_report.json"


def test_an_artifact_has_sorted_keys_an_indent_and_a_last_newline(path):
    returned = write_json_artifact(path, {"b": [1, None], "a": "é"})

    assert path.read_text() == ('{\n  "a": "é",\n  "b": [\n    1,\n    null\n  ]\n}\n')
    assert returned == hash_file(path)


def test_the_same_artifact_again_is_no_change(path):
    write_json_artifact(path, {"a": 1})
    before = path.stat()
    write_json_artifact(path, {"a": 1})
    after = path.stat()

    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("other", [{"a": 2}, {"a": 1.0}, {"a": True}, {}])
def test_another_artifact_in_its_place_is_a_conflict(path, other):
    write_json_artifact(path, {"a": 1})
    with pytest.raises(ArtifactError, match="eval_cli_artifact_conflict"):
        write_json_artifact(path, other)

    assert read_json_artifact(path) == {"a": 1}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("payload", [float("nan"), {"x": float("inf")}, "\ud800"])
def test_what_json_cannot_hold_leaves_no_file(path, payload):
    with pytest.raises(ArtifactError, match="eval_artifact_invalid"):
        write_json_artifact(path, payload)

    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b'{"a":NaN}', b'{"a":1,"a":2}', b"{", b"\xff"])
def test_what_is_no_strict_json_is_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="eval_artifact_invalid"):
        read_json_artifact(path)


@given(
    st.dictionaries(
        TEXT,
        st.none()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXT,
    )
)
def test_an_artifact_reads_back_as_what_was_written(payload):
    assert json.loads(artifact_bytes(payload)) == payload


def test_a_failure_while_writing_leaves_no_file(path):
    def pieces():
        yield b"half"
        raise KeyError("source")

    with pytest.raises(KeyError):
        write_once(path, pieces())

    assert list(path.parent.iterdir()) == []


def test_what_a_killed_run_left_half_written_is_no_obstacle(path):
    path.with_name(".eval_report.json.tmp").write_bytes(b"half")
    write_json_artifact(path, {})

    assert list(path.parent.iterdir()) == [path]
