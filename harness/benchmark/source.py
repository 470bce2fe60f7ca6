"""The gate of the benchmark: a config's source, verified against every declaration.

`verify_source` runs the checks of `spec/executable-evaluator.md` 3.3 in their order
and refuses at the first that fails. A VerifiedSource is the only way to get at rows;
it keeps ids and small facts, and reads rows from disk as they are asked for. Nothing
here contacts an endpoint, and reports hold no path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.benchmark.exposure import Exposure
from harness.benchmark.oracle_check import CheckedOracle, Probe, check_oracle
from harness.benchmark.pack import Pack
from harness.benchmark.pack_tree import tree_paths
from harness.benchmark.problems import Problems
from harness.benchmark.report_files import replace_report
from harness.benchmark.rows import Row
from harness.benchmark.run_manifest import (
    MANIFEST_NAME,
    RunManifest,
    read_run_manifest,
)
from harness.benchmark.source_guard import (
    FileStat,
    GuardedFile,
    SourceGuard,
    counted_names,
    file_stat,
    snapshot,
)
from harness.benchmark.stored_source import PUBLICATION_LINEAGE
from harness.benchmark.table_check import TableChecker, TaskIndex
from harness.benchmark.tables import read_rows
from harness.canonical import Json, content_hash, hash_file
from harness.config import EvalConfig
from harness.errors import SourceError

VERIFICATION_VERSION: Final = "1.0"
REPORT_NAME: Final = "source_verification_report.json"
FAILURE_NAME: Final = "source_verification_failure.json"
CERTIFICATION: Final = "oracle_validation_report"


@dataclass(frozen=True)
class VerifiedSource:
    """A publication that is what it declares; built by `verify_source` alone."""

    eval_config_hash: str
    modes: tuple[str, ...]
    run_manifest: RunManifest
    index: TaskIndex
    exposures: tuple[Exposure, ...]
    oracle: CheckedOracle | None
    checks: tuple[str, ...]
    """Names of the checks that passed, in their order."""
    table: Path
    """The published table; its rows are read with `rows`."""
    guard: SourceGuard

    @property
    def manifest(self) -> dict[str, Json]:
        """The values of run_manifest.json."""
        return self.run_manifest.value

    @property
    def run_id(self) -> str:
        """The publication's id."""
        return self.run_manifest.run_id

    @property
    def pack(self) -> Pack | None:
        """The certified pack; None for a trace run."""
        return self.oracle.pack if self.oracle else None

    @property
    def oracle_verification_identity(self) -> str | None:
        """The identity of the oracle; None for a trace run."""
        return self.oracle.verification_identity if self.oracle else None

    @property
    def claim_scope(self) -> str:
        """What a score on this source can claim."""
        return "trace_and_executable" if self.oracle else "trace_only"

    @cached_property
    def task_ids(self) -> tuple[str, ...]:
        """All published task ids in publication order."""
        return tuple(self.index.task_ids)

    @cached_property
    def task_ids_hash(self) -> str:
        """The content hash of the ordered ids."""
        return content_hash(self.index.task_ids)

    @property
    def non_publication_reasons(self) -> tuple[str, ...]:
        """Why scores on this source cannot be published, as far as it decides."""
        if self.manifest["lineage_policy"] == PUBLICATION_LINEAGE:
            return ()
        return ("source.lineage_policy",)

    @cached_property
    def verification_identity(self) -> str:
        """The content hash of everything that was verified, and for which config."""
        return content_hash(
            {
                "schema_version": VERIFICATION_VERSION,
                "eval_config_hash": self.eval_config_hash,
                "source_manifest_hash": self.run_manifest.content_hash,
                "benchmark": _table(self.manifest, "published"),
                "raw_benchmark": _table(self.manifest, "raw"),
                "task_ids_hash": self.task_ids_hash,
                "pack_content_hash": self.manifest["pack"]["content_hash"],
                "oracle_verification_identity": self.oracle_verification_identity,
                "exposures": [exposure.identity() for exposure in self.exposures],
                "modes": list(self.modes),
                "claim_scope": self.claim_scope,
            }
        )

    def rows(self) -> Iterator[Row]:
        """Yield the published rows in order, read from disk batch by batch."""
        return read_rows(self.table)

    def row(self, task_id: str) -> Row:
        """Return one published row by reading up to it; KeyError if there is none."""
        for row in self.rows():
            if row["task_id"] == task_id:
                return row
        raise KeyError(task_id)

    def assert_unchanged(self) -> None:
        """Hash every file of the source again.

        Raises SourceError (`eval_source_changed_during_eval`).
        """
        self.guard.assert_unchanged()

    def assert_stat_unchanged(self) -> None:
        """Look at every file of the source without reading it; raise as above."""
        self.guard.assert_stat_unchanged()

    @property
    def report(self) -> dict[str, Json]:
        """The payload of `source_verification_report.json`."""
        manifest = self.manifest
        return {
            "schema_version": VERIFICATION_VERSION,
            "status": "passed",
            "verification_identity": self.verification_identity,
            "eval_config_hash": self.eval_config_hash,
            "source_run_id": self.run_id,
            "source_manifest_hash": self.run_manifest.content_hash,
            "generation_config_hash": manifest["generation_config_hash"],
            "resolved_config_hash": manifest["resolved_config_hash"],
            "lineage_policy": manifest["lineage_policy"],
            "gold_eligible": self.run_manifest.gold_eligible,
            "benchmark": _table(manifest, "published"),
            "raw_benchmark": _table(manifest, "raw"),
            "publication": manifest["publication"],
            "task_index": self.index.payload(),
            "oracle": self.oracle.payload() if self.oracle else None,
            "translation": None,
            "exposures": [exposure.identity() for exposure in self.exposures],
            "modes": list(self.modes),
            "claim_scope": self.claim_scope,
            "checks": list(self.checks),
        }


def verify_source(config: EvalConfig, *, probe: Probe | None = None) -> VerifiedSource:
    """Verify the publication, and for executable mode the pack, of a loaded config.

    `probe` imports the pack in a throwaway worker; without it that one check is
    skipped and not listed. Raises SourceError for the first check that fails.
    """
    checks: list[str] = []
    paths = config.paths
    stats = snapshot(_pack_files(paths.pack_root).values())
    stats |= snapshot([paths.run_manifest])
    stated = config.source_run_manifest
    manifest = read_run_manifest(paths.run_manifest, stated.content_hash, checks.append)
    tables = TableChecker(paths.publication_root, manifest)
    stats |= snapshot([tables.raw, tables.published])
    tables.check_bytes(stated.published_content_hash, checks.append)
    _check_certification(paths.publication_root, manifest, checks.append)
    inventory = tables.check_rows(checks.append)
    oracle = None
    if config.is_executable:
        oracle = check_oracle(config, manifest, probe, checks.append)
    checks.append("translation_lineage")
    exposures = inventory()
    checks.append("model_exposure")
    return VerifiedSource(
        eval_config_hash=config.eval_config_hash,
        modes=config.eval.mode,
        run_manifest=manifest,
        index=tables.index,
        exposures=exposures,
        oracle=oracle,
        checks=tuple(checks),
        table=tables.published,
        guard=_guard(paths.run_manifest, manifest, tables, oracle, stats),
    )


def _check_certification(
    root: Path, manifest: RunManifest, passed: Callable[[str], None]
) -> None:
    """Hash the certification report, where the manifest declares one."""
    declared = manifest.value["artifacts"].get(CERTIFICATION)
    if not isinstance(declared, dict) or "content_hash" not in declared:
        return
    path = root / str(declared.get("file", f"{CERTIFICATION}.json"))
    actual = hash_file(path) if path.is_file() else "no such file"
    if actual != declared["content_hash"]:
        raise SourceError(
            "eval_source_publication_invalid",
            "the certification report is not the one that the manifest declares",
            where=path.name,
            expected=str(declared["content_hash"]),
            actual=actual,
            recovery="bring back the file that `fairtrial publish` wrote",
        )
    passed("certification_report")


def write_source_report(folder: Path, source: VerifiedSource) -> None:
    """Write `source_verification_report.json`; an older failure file is removed."""
    replace_report(folder, REPORT_NAME, source.report, stale=FAILURE_NAME)


def write_source_failure(folder: Path, config: EvalConfig, error: SourceError) -> None:
    """Write `source_verification_failure.json`; an older report is removed."""
    payload: dict[str, Json] = {
        "schema_version": VERIFICATION_VERSION,
        "status": "refused",
        "eval_config_hash": config.eval_config_hash,
        "source_run_id": config.source_run_manifest.run_id,
        "source_manifest_hash": config.source_run_manifest.content_hash,
        "modes": list(config.eval.mode),
        "error": error.as_report(),
    }
    replace_report(folder, FAILURE_NAME, payload, stale=REPORT_NAME)


def _table(manifest: dict[str, Json], table: str) -> dict[str, Json]:
    section = manifest["publication"][table]
    return {key: section[key] for key in ("file", "rows", "content_hash")}


def _pack_files(root: Path | None) -> dict[str, Path]:
    return {} if root is None else tree_paths(root, Problems())


def _guard(
    manifest_path: Path,
    manifest: RunManifest,
    tables: TableChecker,
    oracle: CheckedOracle | None,
    stats: dict[Path, FileStat | None],
) -> SourceGuard:
    files = [
        (MANIFEST_NAME, manifest_path, manifest.content_hash),
        (tables.raw.name, tables.raw, manifest.raw.content_hashes[0]),
        (tables.published.name, tables.published, manifest.published.content_hashes[0]),
    ]
    root, names, docs = None, frozenset[str](), None
    if oracle is not None:
        tree = oracle.pack.tree
        root, docs = oracle.pack.root, tree.docs
        names = counted_names(tree.paths, docs)
        inert = tree.docs_files()
        files += [
            (name, path, tree.files[name])
            for name, path in tree.paths.items()
            if name not in inert
        ]
    return SourceGuard(
        tuple(GuardedFile(n, p, h, stats.get(p) or file_stat(p)) for n, p, h in files),
        root,
        names,
        docs,
    )
