"""`run_manifest.json`: the commit marker of a publication (spec 2.4).

Nothing in it depends on the clock, the folder or the machine: the run's id comes
from the content, and its time is the oracle's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Final

from harness.benchmark.certification import Certification
from harness.benchmark.pack import Pack
from harness.benchmark.projection import ORACLE_CLOCK
from harness.benchmark.rows import Row, row_hash
from harness.benchmark.templates import combinations
from harness.canonical import Json, content_hash

MANIFEST_FILE: Final = "run_manifest.json"
RAW_FILE: Final = "benchmark_raw.parquet"
PUBLISHED_FILE: Final = "benchmark.parquet"
REPORT_FILE: Final = "oracle_validation_report.json"
MANIFEST_VERSION: Final = "1.0"
PUBLICATION_VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True)
class Generation:
    """What was asked of a publication, beside the pack."""

    seed: int
    language: str
    max_variants: int
    """Tasks that one template gives at most."""


_NO_MODEL: Final = {
    "enabled": False,
    "provider": None,
    "model": None,
    "canonical_id": None,
    "revision": None,
    "weights_digest": None,
}


def run_manifest(
    pack: Pack,
    certification: Certification,
    raw: list[Row],
    published: list[Row],
    asked: Generation,
    *,
    file_hashes: dict[str, str],
) -> dict[str, Json]:
    """Return the manifest; `file_hashes` maps file names to content hashes."""
    generation = {**asdict(asked), "oracle_clock": ORACLE_CLOCK}
    return {
        "schema_version": MANIFEST_VERSION,
        "run_id": run_id(pack, generation, raw, published),
        "created_at": ORACLE_CLOCK,
        "oracle_clock": ORACLE_CLOCK,
        "tier": certification.tier,
        "gold_eligible": certification.gold_eligible,
        "gold_ineligibility_reasons": certification.ineligibility_reasons(),
        "generation_config_hash": content_hash(generation),
        "resolved_config_hash": content_hash(
            {**generation, "pack": pack.fingerprint.value}
        ),
        "generation_mode": "templates",
        "seeds": {"publication": asked.seed},
        "language": asked.language,
        "lineage_policy": "strict_separation",
        "pack": _pack(pack),
        "oracle": {
            "kind": pack.oracle_kind,
            "endpoint": None if pack.endpoint is None else pack.endpoint.metadata(),
        },
        "models": {
            role: dict(_NO_MODEL) for role in ("profile", "paraphrase", "surface_judge")
        },
        "profile_influenced_surface": False,
        "judge_advisory": None,
        "held_out": {"evaluated": False, "declared": pack.held_out is not None},
        "artifacts": {
            "benchmark_raw_parquet": _artifact(RAW_FILE, file_hashes),
            "benchmark_parquet": _artifact(PUBLISHED_FILE, file_hashes),
            "oracle_validation_report": _artifact(REPORT_FILE, file_hashes),
        },
        "publication": _publication(raw, published, file_hashes),
        "stage_counts": _stage_counts(pack, certification, raw, published),
        "trace_drop_rejections": _drops(certification),
        "surface_guard_rejections": dict(
            Counter(certification.surface_rejections.values())
        ),
        "semantic_deduplication": {"report": None},
        "exports": {},
    }


def run_id(
    pack: Pack, generation: dict[str, Json], raw: list[Row], published: list[Row]
) -> str:
    """Return the id that the content alone decides, whatever wrote the tables."""
    content = content_hash(
        {
            "generation": generation,
            "pack": pack.fingerprint.value,
            "raw": [row_hash(row) for row in raw],
            "published": [row["task_id"] for row in published],
        }
    )
    return f"{pack.pack_id}-{pack.version}-{content.removeprefix('sha256:')[:12]}"


def _pack(pack: Pack) -> dict[str, Json]:
    fingerprint = pack.fingerprint
    docs = pack.tree.docs_files()
    return {
        "pack_id": pack.pack_id,
        "version": pack.version,
        "content_hash": fingerprint.value,
        "fingerprint_algorithm": fingerprint.algorithm,
        "files": {n: h for n, h in pack.files.items() if n not in docs},
        "docs_files": docs,
    }


def _artifact(name: str, file_hashes: dict[str, str]) -> dict[str, Json]:
    return {"file": name, "content_hash": file_hashes[name]}


def _publication(
    raw: list[Row], published: list[Row], file_hashes: dict[str, str]
) -> dict[str, Json]:
    return {
        "schema_version": PUBLICATION_VERSION,
        "verified": True,
        "restated_fields": [],
        "raw": {**_artifact(RAW_FILE, file_hashes), "rows": len(raw)},
        "published": {
            **_artifact(PUBLISHED_FILE, file_hashes),
            "rows": len(published),
            "surface_gate": "deterministic_guards",
            "ordering": "raw_order",
            "dedup_balancing_applied": False,
            "held_out_evaluated": False,
        },
    }


def _stage_counts(
    pack: Pack, certification: Certification, raw: list[Row], published: list[Row]
) -> dict[str, int]:
    stages = certification.stages.values()
    traced = len(certification.traces)
    return {
        "combinations": sum(map(combinations, pack.templates)),
        "expanded": traced + len(certification.surface_rejections),
        "surface_passed": traced,
        "trace_derived": len(raw),
        "trace_dropped": traced - len(raw),
        "schema_passed": sum("schema" in passed for passed in stages),
        "replay_passed": sum("replay" in passed for passed in stages),
        "published": len(published),
    }


def _drops(certification: Certification) -> dict[str, int]:
    reasons = [
        _drop_reason(certification, task_id)
        for task_id, passed in certification.stages.items()
        if "replay" not in passed
    ]
    return dict(sorted(Counter(reasons).items()))


def _drop_reason(certification: Certification, task_id: str) -> str:
    trace = certification.traces[task_id]
    if trace.stage == "schema":
        return "schema_invalid_gold"
    return "replay_failed" if trace.problem else "nondeterministic_replay"
