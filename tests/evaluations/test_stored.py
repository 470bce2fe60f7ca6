"""Records on disk: checked against themselves, found beside their run, counted."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ArtifactError, EngineError
from harness.evaluations.record import RECORD_FILE, build_record
from harness.evaluations.stored import (
    problems_of,
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


def test_record_of_another_version_is_refused():
    record = {**build_record(inputs()), "record_version": "0"}

    (problem,) = problems_of(record)
    assert problem.where == f"{RECORD_FILE}, record_version"


def test_all_problems_are_told_at_once():
    record = build_record(inputs())
    record["kind"], record["subjects"] = 3, "none"

    assert {each.where for each in problems_of(record)} == {
        f"{RECORD_FILE}, kind",
        f"{RECORD_FILE}, subjects",
    }


@settings(suppress_health_check=[HealthCheck.differing_executors])
@given(st.sampled_from(sorted(build_record(inputs()))), JUNK)
def test_junk_in_a_member_never_crashes_the_reader(name, junk):
    record = {**build_record(inputs()), name: junk}

    assert isinstance(list(problems_of(record)), list)


@given(
    st.sampled_from(["fields", "version", "fingerprint"]),
    JUNK,
)
def test_junk_in_a_protocol_is_a_problem(name, junk):
    record = build_record(inputs())
    record["protocol"] = {**record["protocol"], name: junk}

    assert list(problems_of(record)) != []


def test_records_of_a_run_are_its_own_and_those_made_of_it(tmp_path):
    run = written(tmp_path / "run")
    again = later(tmp_path / "again", run, subject(correct=1))
    of_again = later(tmp_path / "deeper", again, subject(correct=2))
    written(tmp_path / "stranger", subject(correct=4))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / RECORD_FILE).write_text("{")

    assert [each.folder for each in records_of_run(run)] == [run, again, of_again]


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
