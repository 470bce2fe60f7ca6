"""Publishing: a pack becomes an immutable benchmark, or nothing at all.

Everything is written into a temporary sibling folder, `run_manifest.json` last, and
the folder gets its name in one rename. Same pack, seed and language: same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmark.certification import Certification
from harness.benchmark.certify import Progress, certify
from harness.benchmark.commit_marker import (
    MANIFEST_FILE,
    PUBLISHED_FILE,
    RAW_FILE,
    REPORT_FILE,
    Generation,
    run_manifest,
)
from harness.benchmark.oracle_access import GoldOracle
from harness.benchmark.pack import Pack, load_pack
from harness.benchmark.rows import Row, build_row, row_hash, visible_steps
from harness.benchmark.tables import read_rows, write_rows
from harness.benchmark.templates import MAX_VARIANTS, PlannedTask, expand
from harness.canonical import Json, canonical_json, hash_file
from harness.causes import EXIT_DONE, exit_status
from harness.errors import FairtrialError, OracleError, PackError, UsageError

__all__ = ["PublishedRun", "publish", "read_rows", "row_hash"]

NOT_GOLD: Final = "pack_not_gold"


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A finished publication."""

    output: Path
    run_id: str
    tier: str
    gold_eligible: bool
    rows: int
    raw_rows: int
    manifest: dict[str, Json]
    report: dict[str, Json]
    """The certification report."""

    @property
    def exit_status(self) -> int:
        """0 for gold, 2 for a finished publication that is not."""
        return EXIT_DONE if self.gold_eligible else exit_status(NOT_GOLD)


async def publish(
    pack: Pack,
    output: Path,
    *,
    seed: int = 0,
    language: str | None = None,
    max_variants: int = MAX_VARIANTS,
    oracle: GoldOracle,
    progress: Progress = lambda _: None,
) -> PublishedRun:
    """Certify a pack and publish its tasks under `output`, which must not exist.

    Each template gives at most `max_variants` tasks.
    Raises UsageError (`eval_output_exists`), and PackError where the pack has no
    such language, nothing survives, or two tasks contradict each other.
    """
    refuse_existing(output)
    language = language or pack.manifest.default_language
    tasks = expand(pack, seed=seed, language=language, max_variants=max_variants)
    certification = await certify(pack, tasks, oracle, progress=progress)
    raw, published = publishable_rows(pack, tasks, certification)
    refuse_contradictions(published)
    await confirm_endpoint(pack, oracle)
    progress(f"writing {len(published)} tasks")
    manifest = _write(
        pack,
        output,
        certification,
        raw,
        published,
        Generation(seed, language, max_variants),
    )
    return PublishedRun(
        output=output,
        run_id=manifest["run_id"],
        tier=certification.tier,
        gold_eligible=certification.gold_eligible,
        rows=len(published),
        raw_rows=len(raw),
        manifest=manifest,
        report=certification.report(pack),
    )


def publishable_rows(
    pack: Pack, tasks: list[PlannedTask], certification: Certification
) -> tuple[list[Row], list[Row]]:
    """Return the raw rows (replay agreed) and the published ones (assertions hold).

    Raises PackError when no row is left to publish.
    """
    raw = [
        build_row(
            pack,
            task,
            certification.traces[task.task_id].calls,
            tier=certification.tier,
            gold_eligible=certification.gold_eligible,
            validated_by=certification.stages[task.task_id],
        )
        for task in tasks
        if "replay" in certification.stages.get(task.task_id, ())
    ]
    published = [row for row in raw if "assertions" in row["validated_by"]]
    if not published:
        first = next(
            (f for c in certification.checks.values() for f in c.failures), None
        )
        raise PackError(
            "pack_invalid",
            "no task of the pack survived certification",
            where=f"pack {pack.pack_id} {pack.version}",
            expected="gold runs that repeat and whose assertions hold",
            actual=canonical_json(first)[:400] if first else "",
            recovery="`fairtrial pack check` lists every failure",
        )
    return raw, published


async def confirm_endpoint(pack: Pack, oracle: GoldOracle) -> None:
    """Have an endpoint say once more who it is, for certification took its time.

    Raises OracleError for another oracle, or for none.
    """
    if pack.endpoint is None:
        return
    try:
        async with oracle.host(pack.code(), mode="shared"):
            return
    except oracle.fault_type as fault:
        raise OracleError(
            "eval_oracle_session_failed",
            "the endpoint was certified, but does not answer any more",
            where=pack.endpoint.base_url,
            expected="the certified oracle, still there when its tasks are published",
            actual=str(fault),
            recovery="publish again while the oracle runs",
        ) from None


def refuse_contradictions(rows: list[Row]) -> None:
    """Refuse two tasks that look the same and ask for different next steps.

    Raises PackError naming every such pair, for no model could get both right.
    """
    first_seen: dict[str, tuple[str, str]] = {}
    errors: dict[tuple[str, str], PackError] = {}
    for row in rows:
        for prefix, step in visible_steps(row):
            other, other_step = first_seen.setdefault(prefix, (row["task_id"], step))
            pair = (other, row["task_id"])
            if other_step != step and pair not in errors:
                errors[pair] = PackError(
                    "pack_invalid",
                    "two tasks look the same to a model and expect different steps",
                    where=f"tasks {other} and {row['task_id']}",
                    expected="words or values that tell the two apart",
                    actual=f"{other_step[:200]} against {step[:200]}",
                    recovery="reword one of the templates or narrow its slots",
                )
    if errors:
        violations = tuple(error.violations[0] for error in errors.values())
        raise PackError("pack_invalid", violations[0].problem, violations=violations)


def refuse_existing(output: Path) -> None:
    """Raise UsageError if the output exists in any form."""
    if os.path.lexists(output):
        raise UsageError(
            "eval_output_exists",
            "the output exists already",
            where=str(output),
            expected="a folder that does not exist yet",
            recovery="name another folder; a publication is never overwritten",
        )


def write_json(path: Path, payload: Json) -> None:
    """Write a JSON file as people read it, and wait until the disk has it."""
    text = json.dumps(
        payload, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    with path.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _write(
    pack: Pack,
    output: Path,
    certification: Certification,
    raw: list[Row],
    published: list[Row],
    generation: Generation,
) -> dict[str, Json]:
    output.parent.mkdir(parents=True, exist_ok=True)
    work = output.parent / f".{output.name}.partial-{os.getpid()}"
    work.mkdir()
    try:
        write_rows(work / RAW_FILE, raw)
        write_rows(work / PUBLISHED_FILE, published)
        for name in (RAW_FILE, PUBLISHED_FILE):
            _wait_for_disk(work / name)
        write_json(work / REPORT_FILE, certification.report(pack))
        _refuse_changed_pack(pack)
        manifest = run_manifest(
            pack,
            certification,
            raw,
            published,
            generation,
            file_hashes={
                name: hash_file(work / name)
                for name in (RAW_FILE, PUBLISHED_FILE, REPORT_FILE)
            },
        )
        write_json(work / MANIFEST_FILE, manifest)
        refuse_existing(output)
        work.rename(output)
        _wait_for_disk(output.parent)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return manifest


def _wait_for_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_changed_pack(pack: Pack) -> None:
    """Refuse a pack whose files changed while it was certified."""
    try:
        now = load_pack(pack.root).fingerprint
    except FairtrialError:
        now = None
    if now != pack.fingerprint:
        raise PackError(
            "pack_invalid",
            "the pack changed while it was certified",
            where=str(pack.root),
            expected=pack.fingerprint.value,
            actual=now.value if now is not None else "a pack that does not load",
            recovery="publish again and leave the pack alone meanwhile",
        )
