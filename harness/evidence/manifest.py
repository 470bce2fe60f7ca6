"""`eval_manifest.json`: the last file of a run, which makes it finished.

It names every artifact by its content hash, commits to every record by one root, and
holds its own hash, so that no bit of a run can change unseen.
The evidence root is a Merkle root (`harness.evidence.merkle`) whose records are the
evidence files, sorted by name. A file's digest is SHA-256 of byte 0x02, the name in
UTF-8, byte 0x00, the number of records as 8 bytes big-endian, and the 32 bytes of
the Merkle root over the file's own record hashes in file order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from harness.canonical import Json, content_hash
from harness.evidence.artifacts import write_json_artifact
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.episode_log import EPISODE_LOG
from harness.evidence.log_line import LogFormat
from harness.evidence.merkle import merkle_root
from harness.evidence.plan_file import PLAN_FILE

MANIFEST_FILE: Final = "eval_manifest.json"
MANIFEST_VERSION: Final = "1.0"
EVIDENCE_FILES: Final[dict[str, LogFormat]] = {
    "candidate_io_cache": CANDIDATE_LOG,
    "eval_plan": PLAN_FILE,
    "tool_trace_cache": EPISODE_LOG,
}
"""Evidence files by the name that artifacts and roots use."""
REPORT_IDENTITIES: Final = (
    "eval_run_id",
    "eval_scope",
    "source_run_id",
    "eval_config_hash",
    "error_taxonomy_hash",
    "plan_identity",
    "source_verification_identity",
)
"""Fields that report and manifest share."""
MANIFEST_MEMBERS: Final = (
    "schema_version",
    *REPORT_IDENTITIES,
    "scoring_policy_hash",
    "runtime",
    "source",
    "candidates",
    "candidate_aggregates",
    "artifacts",
    "evidence",
    "merkle_root",
    "containment",
    "torn_tails",
    "timing",
    "publication_allowed",
    "non_publication_reasons",
)
"""What a manifest holds beside its own hash."""


@dataclass(frozen=True, slots=True)
class RecordRoot:
    """The records of one evidence file."""

    records: int
    root: str
    """The Merkle root over their hashes."""

    def as_payload(self) -> dict[str, Json]:
        """Return the form in the manifest."""
        return {"records": self.records, "root": self.root}


@dataclass(frozen=True, slots=True)
class RunTiming:
    """When the process that finished a run began and ended; in no identity."""

    started_at: datetime
    finished_at: datetime

    def as_payload(self) -> dict[str, Json]:
        """Return both moments in ISO-8601."""
        return {
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat(),
        }


def evidence_root(files: Mapping[str, RecordRoot]) -> str:
    """Return the one root over all records of all evidence files."""
    return merkle_root(_file_digest(name, files[name]) for name in sorted(files))


def _file_digest(name: str, file: RecordRoot) -> bytes:
    return hashlib.sha256(
        b"\x02"
        + name.encode()
        + b"\x00"
        + file.records.to_bytes(8, "big")
        + bytes.fromhex(file.root.removeprefix("sha256:"))
    ).digest()


def build_manifest(
    *,
    report: Mapping[str, Json],
    scoring_policy_hash: str,
    runtime: Mapping[str, Json],
    source: Mapping[str, Json],
    candidates: Iterable[Mapping[str, Json]],
    candidate_aggregates: Mapping[str, str],
    artifacts: Mapping[str, tuple[str, str]],
    evidence: Mapping[str, RecordRoot],
    containment: Mapping[str, Json],
    torn_tails: Mapping[str, int],
    timing: RunTiming,
) -> dict[str, Json]:
    """Return the manifest's payload (spec 3.16).

    `artifacts` maps a name to file name and content hash; `evidence` has a root for
    every evidence file that the run wrote; `containment` is what workers ran under,
    empty for a run without any; `torn_tails` are the files that hold what a killed
    process left unfinished at a log's end, with their sizes in bytes.
    """
    payload: dict[str, Json] = {
        "schema_version": MANIFEST_VERSION,
        **{name: report[name] for name in REPORT_IDENTITIES},
        "scoring_policy_hash": scoring_policy_hash,
        "runtime": dict(runtime),
        "source": dict(source),
        "candidates": [dict(candidate) for candidate in candidates],
        "candidate_aggregates": dict(candidate_aggregates),
        "artifacts": {
            name: {"file": file, "content_hash": content_hash}
            for name, (file, content_hash) in artifacts.items()
        },
        "evidence": {name: file.as_payload() for name, file in evidence.items()},
        "merkle_root": evidence_root(evidence),
        "containment": dict(containment),
        "torn_tails": dict(torn_tails),
        "timing": timing.as_payload(),
        "publication_allowed": report["publication_allowed"],
        "non_publication_reasons": report["non_publication_reasons"],
    }
    return {**payload, "manifest_hash": manifest_hash(payload)}


def write_manifest(folder: Path, manifest: Mapping[str, Json]) -> str:
    """Write the manifest, after everything that it names, and return its hash."""
    return write_json_artifact(folder / MANIFEST_FILE, dict(manifest))


def manifest_hash(manifest: Mapping[str, Json]) -> str:
    """Return the content hash of a manifest without its own hash."""
    return content_hash(
        {name: value for name, value in manifest.items() if name != "manifest_hash"}
    )
