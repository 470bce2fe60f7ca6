"""The certification report: one line a check, gold only if every check passed.

A check that could not run is `skipped`, and skipped is not passed
(`spec/executable-evaluator.md` 1.8).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from harness.benchmark.gold_run import GoldTrace
from harness.benchmark.pack import Pack
from harness.benchmark.rows import TIER_GOLD, TIER_SILVER
from harness.canonical import Json

REPORT_VERSION: Final = "1.0"
CHECKS: Final = {
    "template_tool_names": "Templates call tools that the pack has.",
    "template_slot_sources": "Every slot source yields values.",
    "backend_schema_alignment": "The backend serves exactly the declared tools.",
    "assertions_importable": "The assertions import, and all named ones exist.",
    "declared_validation_cases": "Every validation case shows what it declares.",
    "confirmation_policy": "An unconfirmed call changes nothing and says so.",
    "representative_generation_contract": "Every template becomes readable tasks.",
    "M1": "Tools and templates change state exactly where they say so.",
    "D1": "A repeated probe gives the same result and state.",
    "D2": "Every error carries a code.",
    "T1": "A tool that never returns is killed.",
    "I1": "Pack code runs in a worker process.",
    "gold_replay": "Every gold run fits the schemas and repeats exactly.",
    "gold_assertions": "Every assertion holds on its gold run.",
    "state_bleed": "Tasks give the same results alone and in another order.",
}
"""Every check of a pack with a backend by name, in report order."""
ENDPOINT_CHECKS: Final = {
    "endpoint_identity": "The endpoint says that it is the declared oracle.",
    "endpoint_attestation": "Its conformance document is the attested one.",
}
"""What an endpoint pack has to pass beside them."""


def checks_of(pack: Pack) -> dict[str, str]:
    """Return every check that the pack has to pass, with its meaning."""
    return CHECKS if pack.endpoint is None else {**CHECKS, **ENDPOINT_CHECKS}


@dataclass(slots=True)
class Check:
    """One check's outcome."""

    status: str = "skipped"
    failures: list[dict[str, Json]] = field(default_factory=list)

    def record(self, failures: list[dict[str, Json]]) -> None:
        """Record that the check ran and what failed."""
        self.failures += failures
        self.status = "failed" if self.failures else "passed"


@dataclass(frozen=True, slots=True)
class Certification:
    """What certification found; built by `certify`."""

    checks: dict[str, Check]
    traces: dict[str, GoldTrace]
    """The gold run of every planned task that was run, by task id."""
    stages: dict[str, tuple[str, ...]]
    """`validated_by` of every task, by task id."""
    surface_rejections: dict[str, str]
    """Tasks left out for their words, with the reason."""
    stats: dict[str, Json]
    containment: dict[str, Json]

    @property
    def gold_eligible(self) -> bool:
        """Tell whether every check passed."""
        return all(check.status == "passed" for check in self.checks.values())

    @property
    def tier(self) -> str:
        """The tier that rows of this publication carry."""
        return TIER_GOLD if self.gold_eligible else TIER_SILVER

    def ineligibility_reasons(self) -> list[str]:
        """Return `check.status` of everything that keeps the pack from gold."""
        return [
            f"{name}.{check.status}"
            for name, check in self.checks.items()
            if check.status != "passed"
        ]

    def report(self, pack: Pack) -> dict[str, Json]:
        """Return `oracle_validation_report.json` as plain JSON."""
        fingerprint = pack.fingerprint
        meanings = checks_of(pack)
        return {
            "schema_version": REPORT_VERSION,
            "pack_id": pack.pack_id,
            "pack_version": pack.version,
            "pack_fingerprint": fingerprint.value,
            "pack_fingerprint_algorithm": fingerprint.algorithm,
            "tier": self.tier,
            "gold_eligible": self.gold_eligible,
            "checks": [
                {
                    "check": name,
                    "meaning": meanings[name],
                    "status": check.status,
                    "failures": check.failures,
                }
                for name, check in self.checks.items()
            ],
            "stats": self.stats,
            "isolation_level": self.containment.get("level"),
        }
