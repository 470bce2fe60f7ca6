"""Which scoring contract documents fairtrial has shipped, by content hash.

The scorer applies the rules of these documents and of no edited copy, so a copy
that differs keeps a score from being published. A released hash is never removed.
"""

from __future__ import annotations

from typing import Final

SCORING_CONTRACTS: Final = {
    "sha256:94a0f5254750a2967e938915fabd53a4d90444a516209acc51dcedc6e81e9e70": "1.0",
}
"""Content hash of `configs/scoring-contract.md` by version."""


def is_bundled_contract(content_hash: str) -> bool:
    """Tell whether a document is a scoring contract that fairtrial has shipped."""
    return content_hash in SCORING_CONTRACTS
