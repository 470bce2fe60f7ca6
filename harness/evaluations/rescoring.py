"""Whether a score could be made again from what an evaluation keeps, and why not.

For every row that takes its id, the raw output before any parsing, the finish reason,
a record of a failure and the gold; and for all of them the exact contract under its
hash and a scorer of the version that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from harness.canonical import Json

ObstacleCode = Literal[
    "raw_output_missing",
    "gold_missing",
    "contract_hash_mismatch",
    "rows_incomplete",
    "trace_only_evidence",
    "scorer_version_gone",
]
OBSTACLES: Final[dict[ObstacleCode, str]] = {
    "raw_output_missing": "the text that was scored is not kept as it was received",
    "gold_missing": "what the answers were compared with is not kept",
    "contract_hash_mismatch": "schema, labels or policy are not the ones of the score",
    "rows_incomplete": "not every planned row has an answer or a failure",
    "trace_only_evidence": "the score needs executed tasks and the evidence is a trace",
    "scorer_version_gone": "no scorer of this contract is in this version",
}
"""Every code with what it means, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why a score cannot be made again."""

    code: ObstacleCode
    detail: str = ""
    """What exactly is missing."""

    def as_payload(self) -> dict[str, Json]:
        """Return the form in a record."""
        return {"code": self.code, "detail": self.detail or OBSTACLES[self.code]}
