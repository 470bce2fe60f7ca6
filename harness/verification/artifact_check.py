"""The files of a run against its manifest, and the manifest against itself.

A manifest holds its own hash, every file's hash and every record's root, so each bit
of a run stands under one of them. Identities stand in several files; all must agree.
Where a log's damage was named already, that its file hash differs is no news.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.canonical import Json, hash_bytes, is_content_hash
from harness.errors import FairtrialError
from harness.evidence.artifacts import artifact_bytes
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.lock import LOCK_FILE
from harness.evidence.manifest import (
    MANIFEST_FILE,
    MANIFEST_MEMBERS,
    MANIFEST_VERSION,
    REPORT_IDENTITIES,
    RecordRoot,
    evidence_root,
    manifest_hash,
)
from harness.evidence.plan_file import PlanHeader
from harness.strict_json import StrictJsonError, decode_document
from harness.verification.bundle import AGGREGATES_FILE, RunFiles
from harness.verification.findings import Findings
from harness.verification.survey import SurveyedLog

JSON_FILES: Final = {
    name: file for name, file in ARTIFACT_FILES.items() if file.endswith(".json")
}
_NOT_THERE: Final = "no such file"
_FACTS: Final = ("runtime", "timing", "containment", "torn_tails")
_STATES: Final = {
    MANIFEST_FILE: (*REPORT_IDENTITIES, "scoring_policy_hash"),
    ARTIFACT_FILES["resolved_eval_config"]: ("eval_config_hash", "scoring_policy_hash"),
    ARTIFACT_FILES["source_verification_report"]: (
        "eval_config_hash",
        "source_run_id",
        "verification_identity",
    ),
    ARTIFACT_FILES["contamination_report"]: (
        "eval_config_hash",
        "plan_identity",
        "scoring_policy_hash",
        "source_run_id",
        "source_verification_identity",
    ),
}
"""The identities that a file has to state."""


def read_json(files: RunFiles, name: str, findings: Findings) -> dict[str, Json]:
    """Return the object of a JSON file; {} where there is none that can be used."""
    window = files.windows.get(name)
    if window is None:
        return {}
    findings.count("JSON files in their one text")
    data = window.read()
    try:
        value = decode_document(data)
        own_text = artifact_bytes(value)
    except (StrictJsonError, FairtrialError) as error:
        findings.differs(name, "the file is no strict JSON", "JSON", str(error)[:200])
        return {}
    if not isinstance(value, dict):
        findings.differs(name, "the file holds no object", "an object", str(value)[:80])
        return {}
    if own_text != data:
        findings.differs(
            name,
            "the file does not have the one text of its content",
            hash_bytes(own_text),
            hash_bytes(data),
        )
    return value


class ManifestCheck:
    """One manifest with the files and logs that it is about."""

    def __init__(
        self, files: RunFiles, logs: Mapping[str, SurveyedLog], findings: Findings
    ) -> None:
        self._files = files
        self._logs = logs
        self._findings = findings
        self.manifest = read_json(files, MANIFEST_FILE, findings)
        self.changed: set[str] = set()
        """Names of the files that are not the ones the run wrote."""

    def run(self) -> None:
        """Check everything; `changed` is complete afterwards."""
        if MANIFEST_FILE not in self._files.windows:
            self._findings.differs(
                MANIFEST_FILE, "the run has no manifest", "a finished run", _NOT_THERE
            )
            return
        if self.manifest:
            self._check_members()
            self._check_own_hash()
            self._check_files()
            self._check_records()
        self._check_bundle()

    def _check_members(self) -> None:
        """Hold the manifest to its form, and list what nothing else can prove."""
        expected = [*MANIFEST_MEMBERS, "manifest_hash"]
        version = self.manifest.get("schema_version")
        for what, ours, theirs in (
            ("members", sorted(expected), sorted(self.manifest)),
            ("schema_version", MANIFEST_VERSION, version),
        ):
            where = f"{MANIFEST_FILE}, {what}"
            self._findings.equal("forms of manifests", where, ours, theirs)
        self._findings.leave(
            f"{MANIFEST_FILE}: {', '.join(_FACTS)}",
            "they are facts of the machine and the day, which no other file proves",
        )

    def _check_own_hash(self) -> None:
        try:
            own = manifest_hash(self.manifest)
        except ValueError as error:
            own = str(error)
        stated = self.manifest.get("manifest_hash")
        self._findings.equal(
            "hashes of files", f"{MANIFEST_FILE}, manifest_hash", own, stated
        )

    def _check_files(self) -> None:
        named = self._object("artifacts")
        for name, file in ARTIFACT_FILES.items():
            if name in named:
                stated = named[name] if isinstance(named[name], dict) else {}
                self._check_file(name, file, stated)
            elif file in self._files.windows:
                self._findings.differs(
                    f"{MANIFEST_FILE}, artifacts.{name}",
                    "the manifest does not name a file of the run",
                    file,
                    "nothing",
                )
        for name in sorted(named.keys() - ARTIFACT_FILES.keys()):
            where = f"{MANIFEST_FILE}, artifacts.{name}"
            self._findings.differs(where, "no run writes this", "nothing", name)
        known = {*ARTIFACT_FILES.values(), MANIFEST_FILE, AGGREGATES_FILE, LOCK_FILE}
        for file in sorted(self._files.windows.keys() - known):
            self._findings.leave(file, "it is not under the manifest")

    def _check_file(self, name: str, file: str, stated: Mapping[str, Json]) -> None:
        where = f"{MANIFEST_FILE}, artifacts.{name}.file"
        self._findings.equal("names of files", where, file, stated.get("file"))
        if name in self._logs and self._files.withheld_rows.get(file):
            rows = self._files.withheld_rows[file]
            self._findings.leave(f"the hash of {file}", f"{rows} rows were withheld")
            return
        actual = self._actual_hash(name, file)
        self._findings.count("hashes of files")
        if actual == stated.get("content_hash"):
            return
        self.changed.add(name)
        log = self._logs.get(name)
        if log is None or not log.damaged:
            self._findings.differs(
                file,
                "the file is not the one that the run wrote",
                str(stated.get("content_hash")),
                actual,
            )

    def _actual_hash(self, name: str, file: str) -> str:
        if name in self._logs:
            return self._logs[name].content_hash
        window = self._files.windows.get(file)
        return _NOT_THERE if window is None else window.content_hash()

    def _check_records(self) -> None:
        stated = self._object("evidence")
        roots = {name: _record_root(claim) for name, claim in stated.items()}
        for name, log in sorted(self._logs.items()):
            actual = RecordRoot(len(log), log.merkle_root)
            self._findings.count("roots over records")
            if not log.damaged and roots.get(name) != actual:
                self._root_differs(log, roots.get(name), actual)
        for name in sorted(roots.keys() - self._logs.keys()):
            where = f"{MANIFEST_FILE}, evidence.{name}"
            self._findings.differs(where, "no such evidence", "its file", _NOT_THERE)
        sound = {name: root for name, root in roots.items() if root is not None}
        self._findings.equal(
            "roots over records",
            f"{MANIFEST_FILE}, merkle_root",
            evidence_root(sound),
            self.manifest.get("merkle_root"),
        )

    def _root_differs(
        self, log: SurveyedLog, stated: RecordRoot | None, actual: RecordRoot
    ) -> None:
        where = log.format.file_name
        if stated is not None and stated.records != actual.records:
            first = min(stated.records, actual.records) + 1
            where = f"{where}, record {first}"
        self._findings.differs(
            where,
            "the records are not those that the run wrote",
            "nothing" if stated is None else f"{stated.records} records, {stated.root}",
            f"{actual.records} records, {actual.root}",
        )

    def _check_bundle(self) -> None:
        """Compare what `bundle.json` says of the files with the files."""
        header = self._files.header
        if header is None:
            return
        names = {file: name for name, file in ARTIFACT_FILES.items()}
        for member in header.members:
            actual = self._actual_hash(names.get(member.file, ""), member.file)
            self._findings.count("hashes of files")
            if actual != member.content_hash:
                self._findings.differs(
                    member.file,
                    "the file is not the one that was sealed",
                    member.content_hash,
                    actual,
                )
        for name, stated, actual_value in (
            ("merkle_root", header.merkle_root, self.manifest.get("merkle_root")),
            ("eval_run_id", header.eval_run_id, self.manifest.get("eval_run_id")),
            ("manifest_hash", header.manifest_hash, self.manifest.get("manifest_hash")),
        ):
            where = f"bundle.json, {name}"
            self._findings.equal("identities", where, actual_value, stated)

    def _object(self, name: str) -> dict[str, Json]:
        value = self.manifest.get(name)
        if isinstance(value, dict):
            return value
        where = f"{MANIFEST_FILE}, {name}"
        self._findings.differs(where, "the manifest is not whole", "an object", "none")
        return {}


def _record_root(claim: Json) -> RecordRoot | None:
    """Read one root of a manifest; None for what is none."""
    if not isinstance(claim, dict) or claim.keys() != {"records", "root"}:
        return None
    records, root = claim["records"], claim["root"]
    if type(records) is not int or not 0 <= records < 1 << 63:
        return None
    return RecordRoot(records, root) if is_content_hash(root) else None


def check_identities(
    files: Mapping[str, Mapping[str, Json]], header: PlanHeader, findings: Findings
) -> None:
    """Compare the identities in all JSON files with those of the plan.

    `files` has the objects by file name.
    """
    facts = header.facts
    expected: dict[str, Json] = {
        "eval_run_id": facts.get("eval_run_id"),
        "eval_scope": header.scope,
        "eval_config_hash": header.eval_config_hash,
        "scoring_policy_hash": header.scoring_policy_hash,
        "plan_identity": header.plan_identity,
        "source_run_id": header.source_run_id,
        "source_verification_identity": header.source_verification_identity,
    }
    source = {"verification_identity": header.source_verification_identity}
    for file, payload in files.items():
        own = expected | (source if file.startswith("source_") else {})
        stated = own.keys() & {*payload, *_STATES.get(file, ())}
        for name in sorted(stated):
            where = f"{file}, {name}"
            findings.equal("identities", where, own[name], payload.get(name))
    for where, ours, theirs in _nested(files, header):
        findings.equal("identities", where, ours, theirs)


def _nested(
    files: Mapping[str, Mapping[str, Json]], header: PlanHeader
) -> Iterator[tuple[str, Json, Json]]:
    manifest = files.get(MANIFEST_FILE, {})
    yield (
        f"{MANIFEST_FILE}, source",
        {
            "run_id": header.source_run_id,
            "verification_identity": header.source_verification_identity,
            "oracle_verification_identity": header.oracle_verification_identity,
        },
        manifest.get("source"),
    )
    yield (
        f"{MANIFEST_FILE}, candidates",
        [{"alias": c.alias, "canonical_id": c.canonical_id} for c in header.candidates],
        manifest.get("candidates"),
    )
