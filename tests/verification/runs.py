"""Small finished runs, and ways to damage or forge them."""

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import anyio

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.canonical import canonical_bytes, hash_file
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.evidence.artifacts import artifact_bytes
from harness.evidence.folder import ARTIFACT_FILES, RunFolder
from harness.evidence.log import AppendLog
from harness.evidence.log_line import decode_line, encode_line
from harness.evidence.manifest import (
    MANIFEST_FILE,
    RecordRoot,
    evidence_root,
    manifest_hash,
)
from harness.oracle.certifying import CertifyingOracle
from harness.run.evaluate import evaluate
from harness.run.publish import CollectedRun, publish_run, task_table
from harness.run.recorded import RunEvidence
from harness.run.score import score_run
from harness.verification.evidence import LOGS
from tests.contract.desk import Publication
from tests.run.gold_server import CountingControl

KEPT = ("checkout_by_title", "status_without_title", "which_book")
"""Templates of the library that the small benchmark keeps."""


def publish_small(folder, edit_pack=lambda pack: None):
    """Publish a few tasks of the library with real workers."""
    pack = folder / "pack"
    shutil.copytree(resolve_pack("library"), pack)
    edit_pack(pack)
    templates = pack / "task_templates.yaml"
    text = templates.read_text("utf-8")
    blocks = re.split(r"(?m)^(?=- template_id: )", text)
    kept = [b for b in blocks[1:] if b.split("\n")[0].split(": ")[1] in KEPT]
    templates.write_text("".join(kept), "utf-8")

    async def published():
        await publish(load_pack(pack), folder / "benchmark", oracle=CertifyingOracle())

    anyio.run(published)
    small = Publication(folder)
    seen = set()

    def first_of_each(row):
        template = row["template_id"]
        return row if template not in seen and not seen.add(template) else None

    ids = {row["task_id"] for row in map(first_of_each, small.rows) if row is not None}
    small.edit_rows(lambda row: row if row["task_id"] in ids else None)
    return small


def run_small(publication, folder, *models, executable):
    """Run control candidates on it and return the run folder."""
    pack = publication.pack
    with CountingControl(publication.benchmark).served() as server:
        config = write_starter_config(
            folder / "eval.yaml",
            run_manifest=publication.benchmark / "run_manifest.json",
            candidates=[starter_candidate(server.url, model) for model in models],
            oracle=OracleFiles("python", pack / "manifest.yaml", pack / "backend.py")
            if executable
            else None,
            output_dir="run",
        )
        evaluate(
            config,
            resume=False,
            watch=lambda _: None,
            render_page=lambda _: "<!doctype html>\n<p>small</p>\n",
        )
    return config.paths.output_dir


def files_of(folder):
    """Names of the files that a manifest is about, itself included."""
    known = {*ARTIFACT_FILES.values(), MANIFEST_FILE}
    return sorted(path.name for path in folder.iterdir() if path.name in known)


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def flip(path, position, bit):
    """Flip one bit of a file in place."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def log_formats():
    return {log.file_name: log for log in LOGS.values()}


def forge_record(path, number, edit):
    """Change one payload of a log and hash the line anew, as a forger would."""
    log = log_formats()[path.name]
    lines = lines_of(path)
    entry = decode_line(log, lines[number - 1][:-1], number, 0)
    payload = edit(entry.payload())
    lines[number - 1], _ = encode_line(
        log,
        sequence=number,
        record_type=entry.record_type,
        key=entry.key,
        number=entry.number,
        payload=canonical_bytes(payload),
    )
    path.write_bytes(b"".join(lines))


def make_consistent(folder):
    """Write a record and a manifest that fit whatever the files hold now."""
    record = folder / ARTIFACT_FILES["eval_record"]
    payload = json.loads(record.read_text("utf-8"))
    named = payload.get("artifacts") if isinstance(payload, dict) else None
    if isinstance(named, dict):
        for name in named.keys() & set(ARTIFACT_FILES.values()):
            named[name] = hash_file(folder / name)
        record.write_bytes(artifact_bytes(payload))
    path = folder / MANIFEST_FILE
    manifest = json.loads(path.read_text("utf-8"))
    for artifact in manifest["artifacts"].values():
        artifact["content_hash"] = hash_file(folder / artifact["file"])
    roots = {}
    for name in manifest["evidence"]:
        log = LOGS[name]
        with AppendLog.open(folder / log.file_name, log, writable=False) as opened:
            roots[name] = RecordRoot(len(opened), opened.merkle_root)
    manifest["evidence"] = {name: root.as_payload() for name, root in roots.items()}
    manifest["merkle_root"] = evidence_root(roots)
    manifest["manifest_hash"] = manifest_hash(manifest)
    path.write_bytes(artifact_bytes(manifest))


def wheres(verification):
    return [violation.where for violation in verification.findings.violations]


ROOT = Path(__file__).parent.parent.parent


def forge_json(path, edit):
    """Change one JSON file of a run."""
    payload = json.loads(path.read_text("utf-8"))
    path.write_bytes(artifact_bytes(edit(payload)))


def publish_again(folder):
    """Score whatever the evidence is now and write all that follows, as a run does."""
    run = RunFolder(folder)
    containment = json.loads(run.manifest.read_text("utf-8"))["containment"]
    for name in ("eval_report", "eval_task_results", "report", "eval_record"):
        run.file(name).unlink(missing_ok=True)
    run.manifest.unlink()
    with RunEvidence(folder) as evidence:
        with task_table(run, wanted=True) as take_row:
            scored = score_run(evidence, take_row)
        publish_run(
            run,
            CollectedRun(evidence.plan.header, scored, evidence.files(), containment),
            max_stop_share=evidence.config.max_stop_share,
            started=datetime.now(UTC),
            render_page=lambda _: "<!doctype html>\n",
        )
