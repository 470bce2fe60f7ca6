"""What a stored source report says, worked out once more.

Whoever checks a run has no benchmark, only the report on it: which identities follow
from what was verified, and who read which part. Needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.benchmark.model_identity import Comparison, IdentityClaim, compare
from harness.canonical import Json, content_hash
from harness.errors import EvidenceError

Role = Literal["profile", "paraphrase", "surface_judge"]
SCOPES: Final[dict[Role, str]] = {
    "profile": "profile_shaped_rows",
    "paraphrase": "paraphrased_rows",
    "surface_judge": "all_published_rows",
}
"""What a model read in each role."""
PUBLICATION_LINEAGE: Final = "strict_separation"
"""The lineage policy of a benchmark on which scores can be published."""

_NO_PART_OF_ORACLE: Final = (
    "fingerprint_algorithm",
    "interface_probed",
    "verification_identity",
)
_VERIFIED: Final = (
    "schema_version",
    "eval_config_hash",
    "source_manifest_hash",
    "benchmark",
    "raw_benchmark",
    "exposures",
    "modes",
    "claim_scope",
)
"""Members of the report that the source's identity hashes as they stand."""
_MOST_TASKS: Final = 1 << 53
_SOURCE: Final = "source_verification_report.json"


def oracle_identity(source: Mapping[str, Any]) -> str | None:
    """Return the identity of the oracle that was verified; None for a trace run."""
    oracle = source["oracle"]
    if oracle is None:
        return None
    members = oracle.keys() - set(_NO_PART_OF_ORACLE)
    return content_hash({name: oracle[name] for name in members})


def source_identity(source: Mapping[str, Any]) -> str | None:
    """Return the identity of the source; None for a trace run's, which needs a pack."""
    oracle = source["oracle"]
    if oracle is None:
        return None
    return content_hash(
        {
            **{name: source[name] for name in _VERIFIED},
            "task_ids_hash": source["task_index"]["task_ids_hash"],
            "pack_content_hash": oracle["pack_content_hash"],
            "oracle_verification_identity": oracle_identity(source),
        }
    )


@dataclass(frozen=True, slots=True)
class ClaimedModel:
    """One candidate as a run's own files have it."""

    alias: str
    canonical_id: str
    claim: IdentityClaim
    compared: tuple[tuple[dict[str, Any], Comparison], ...]
    """Each exposure with its comparison."""

    def having(self, verdict: str) -> list[dict[str, Any]]:
        """Return the exposures of one verdict."""
        return [each for each, c in self.compared if c.verdict == verdict]

    def comparisons(self) -> list[dict[str, Json]]:
        """Return every comparison as a report has it, its tasks by number and hash."""
        return [
            {
                "role": exposure["role"],
                "scope": exposure["scope"],
                "verdict": comparison.verdict,
                "exposed_model": claim_of(exposure).shown,
                "reason": comparison.reason,
                "decided_by": comparison.axis,
                "settled_by": comparison.settled_by,
                "task_ids": rows_of(exposure),
            }
            for exposure, comparison in self.compared
        ]

    def collisions(self) -> list[dict[str, Json]]:
        """Return the comparisons that did not tell the two models apart."""
        return [c for c in self.comparisons() if c["verdict"] != "different"]


def claimed_model(
    alias: str,
    canonical_id: str,
    claim: IdentityClaim,
    exposures: Sequence[dict[str, Any]],
) -> ClaimedModel:
    """Compare a claim with exposures as a source report lists them.

    Raises EvidenceError for an exposure that no source report has.
    """
    return ClaimedModel(
        alias,
        canonical_id,
        claim,
        tuple((each, compare(claim, claim_of(each))) for each in exposures),
    )


def claim_of(exposure: dict[str, Any]) -> IdentityClaim:
    """Return what an exposure says of the model that read; raise EvidenceError."""
    if SCOPES.get(exposure["role"]) != exposure["scope"]:
        raise EvidenceError(
            "eval_contamination_invalid",
            "an exposure of no known role and scope",
            where=_SOURCE,
            expected=str(SCOPES),
            actual=f"{exposure['role']}, {exposure['scope']}",
            recovery="bring back the folder as the run wrote it",
        )
    return IdentityClaim.from_payload(exposure["claim"], _SOURCE)


def rows_of(exposure: dict[str, Any]) -> dict[str, Json]:
    """Return how many rows were read, and the hash of their ids.

    Raises ValueError for what is no number of tasks.
    """
    count = exposure["task_count"]
    if type(count) is not int or not 0 <= count < _MOST_TASKS:
        raise ValueError(f"no number of tasks: {count!r}"[:80])
    return {"count": count, "hash": exposure["task_ids_hash"]}
