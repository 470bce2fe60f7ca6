"""The manifest commits to every artifact and every record."""

import hashlib
from datetime import UTC, datetime

import pytest

from harness.canonical import content_hash, hash_file
from harness.errors import ArtifactError
from harness.evidence.artifacts import read_json_artifact, write_json_artifact
from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.episode_log import EPISODE_LOG, EpisodeLog
from harness.evidence.log import AppendLog
from harness.evidence.manifest import (
    MANIFEST_FILE,
    RecordRoot,
    RunTiming,
    build_manifest,
    evidence_root,
    manifest_hash,
    write_manifest,
)
from harness.evidence.runtime_facts import runtime_facts
from tests.evidence.samples import attempt, completion, episode, key, request

REPORT = {
    "schema_version": "1.0",
    "eval_run_id": "run-1",
    "eval_scope": "trace_and_executable",
    "source_run_id": "library-0.1.0-ab",
    "eval_config_hash": key(1),
    "error_taxonomy_hash": key(2),
    "plan_identity": key(3),
    "source_verification_identity": key(4),
    "publication_allowed": True,
    "non_publication_reasons": [],
}


def test_root_over_files_as_it_is_worked_out_by_hand():
    def sha(data):
        return hashlib.sha256(data).digest()

    root_a, root_b = sha(b"a"), sha(b"b")
    digest_a = sha(b"\x02a\x00" + (7).to_bytes(8, "big") + root_a)
    digest_b = sha(b"\x02b\x00" + (0).to_bytes(8, "big") + root_b)
    expected = sha(b"\x01" + sha(b"\x00" + digest_a) + sha(b"\x00" + digest_b))
    files = {
        "b": RecordRoot(0, "sha256:" + root_b.hex()),
        "a": RecordRoot(7, "sha256:" + root_a.hex()),
    }

    assert evidence_root(files) == "sha256:" + expected.hex()
    assert evidence_root(files) == (
        "sha256:88f86880f41ee8182105c17517290d46a9d7f7b7fdcfd801b539ec1a41306a22"
    )


def root_of(folder, log):
    with AppendLog.open(folder / log.file_name, log, writable=False) as opened:
        return RecordRoot(len(opened), opened.merkle_root)


@pytest.fixture
def folder(tmp_path):
    """A small finished folder: two logs, a report, the manifest."""
    candidates = tmp_path / CANDIDATE_LOG.file_name
    with CandidateLog.open(candidates, writable=True) as log:
        for turn in range(3):
            asked = request(turn)
            log.request(asked)
            log.attempt(asked.request_hash, attempt(0))
            log.outcome(completion(asked.request_hash))
    with EpisodeLog.open(tmp_path / EPISODE_LOG.file_name, writable=True) as log:
        log.begin(key(9), 1, {})
        log.complete(key(9), episode(1))
    write_json_artifact(tmp_path / "eval_report.json", REPORT)
    files = {
        "candidate_io_cache": CANDIDATE_LOG,
        "tool_trace_cache": EPISODE_LOG,
    }
    names = {name: log.file_name for name, log in files.items()}
    names["eval_report"] = "eval_report.json"
    manifest = build_manifest(
        report=REPORT,
        scoring_policy_hash=key(5),
        runtime=runtime_facts(),
        source={"run_id": "library-0.1.0-ab"},
        candidates=[{"alias": "gold"}],
        candidate_aggregates={"gold": key(6)},
        artifacts={n: (file, hash_file(tmp_path / file)) for n, file in names.items()},
        evidence={name: root_of(tmp_path, log) for name, log in files.items()},
        torn_tails={},
        containment={"level": "process"},
        timing=RunTiming(
            datetime(2026, 1, 5, 12, tzinfo=UTC), datetime(2026, 1, 5, 13, tzinfo=UTC)
        ),
    )
    write_manifest(tmp_path, manifest)
    return tmp_path


def test_the_manifest_names_what_the_contract_asks_for(folder):
    manifest = read_json_artifact(folder / MANIFEST_FILE)
    file = EPISODE_LOG.file_name

    assert manifest.keys() == {
        *(name for name in REPORT),
        "scoring_policy_hash",
        "runtime",
        "source",
        "candidates",
        "candidate_aggregates",
        "artifacts",
        "evidence",
        "merkle_root",
        "containment",
        "timing",
        "torn_tails",
        "manifest_hash",
    }
    assert manifest["artifacts"]["tool_trace_cache"] == {
        "file": file,
        "content_hash": hash_file(folder / file),
    }
    assert manifest["evidence"]["tool_trace_cache"]["records"] == 2


def test_a_manifest_holds_its_own_hash(folder):
    manifest = read_json_artifact(folder / MANIFEST_FILE)
    stated = manifest.pop("manifest_hash")

    assert stated == manifest_hash(manifest) == content_hash(manifest)


def test_another_manifest_in_its_place_is_a_conflict(folder):
    with pytest.raises(ArtifactError, match="eval_cli_artifact_conflict"):
        write_manifest(folder, {})


def test_a_manifest_holds_no_path_of_this_machine(folder):
    assert str(folder) not in (folder / MANIFEST_FILE).read_text()
