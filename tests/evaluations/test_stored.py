"""Records on disk: checked against themselves, found beside their run, counted."""

import json

import pytest
from hypothesis import strategies as st

from harness.errors import ArtifactError, EngineError
from harness.evaluations.record import RECORD_FILE, build_record
from harness.evaluations.stored import (
    read_stored,
    records_of_run,
    uses_before,
)
from tests.evaluations.records import inputs, later, protocol, subject, written

JUNK = st.none() | st.booleans() | st.integers() | st.text() | st.just([]) | st.just({})


def test_written_record_is_read_back(tmp_path):
    folder = written(tmp_path / "run")

    stored = read_stored(folder)
    assert stored.record_id == "original"
    assert stored.is_completed
    assert dict(stored.payload) == build_record(inputs())


def test_folder_without_a_record_is_named(tmp_path):
    (tmp_path / "tmp").mkdir()
    with pytest.raises(ArtifactError, match="tmp has none") as refused:
        read_stored(tmp_path / "tmp")

    assert refused.value.violations[0].where == RECORD_FILE


def test_forged_protocol_field_does_not_fit_the_fingerprint(tmp_path):
    folder = written(tmp_path / "run")
    path = folder / RECORD_FILE
    record = json.loads(path.read_text())
    record["protocol"]["fields"]["decoding"]["max_tokens"] = 17
    path.write_text(json.dumps(record))

    with pytest.raises(ArtifactError) as refused:
        read_stored(folder)

    (violation,) = refused.value.violations
    assert "protocol.fingerprint" in violation.where


def test_records_of_a_run_are_its_own_and_those_made_of_it(tmp_path):
    run = written(tmp_path / "run")
    again = later(tmp_path / "again", run, subject(correct=1))
    of_again = later(tmp_path / "deeper", again, subject(correct=2))
    written(tmp_path / "stranger", subject(correct=4))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / RECORD_FILE).write_text("{")

    assert [each.folder for each in records_of_run(run)] == [run, again, of_again]


def test_failed_attempts_of_a_run_are_among_its_records(tmp_path):
    error = EngineError("eval_engine_failed", "it broke")
    failed = written(tmp_path / "failed", failure=error)
    run = written(tmp_path / "run")
    (failed / RECORD_FILE).rename(run / "eval_record.failed-1.json")

    own, aside = records_of_run(run)
    assert (own.is_completed, aside.is_completed) == (True, False)


def test_uses_count_completed_evaluations_of_the_same_rows(tmp_path):
    rows = {"sha256": "a" * 64, "ids_sha256": "i" * 64, "n": 4}
    same = protocol(rows=rows)
    error = EngineError("eval_engine_failed", "it broke")
    written(tmp_path / "first", protocol=same)
    written(tmp_path / "second", protocol=same)
    written(tmp_path / "failed", protocol=same, failure=error)
    written(tmp_path / "other")

    assert uses_before(tmp_path / "new", "a" * 64) == 2
    assert uses_before(tmp_path / "first", "a" * 64) == 1
    assert uses_before(tmp_path / "nowhere" / "new", "a" * 64) == 0
