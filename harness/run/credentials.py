"""The keys of candidates, read from the environment before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable

from harness.candidates.api_key import api_key
from harness.config.document import CandidateSection


def api_keys(candidates: Iterable[CandidateSection]) -> dict[str, str | None]:
    """Read every candidate's key; raise CandidateError for one that cannot be used."""
    return {
        candidate.alias: api_key(
            candidate.api.api_key_env,
            where=f"candidates[{candidate.alias}].api.api_key_env",
        )
        for candidate in candidates
    }
