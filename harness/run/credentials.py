"""The keys of candidates, read from the environment before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Iterable

from harness.candidates.credential import is_sendable
from harness.config.document import CandidateSection
from harness.errors import CandidateError


def api_keys(candidates: Iterable[CandidateSection]) -> dict[str, str | None]:
    """Read every candidate's key; raise CandidateError for one that cannot be used."""
    keys: dict[str, str | None] = {}
    for candidate in candidates:
        name = candidate.api.api_key_env
        keys[candidate.alias] = key = None if name is None else os.environ.get(name)
        if name is not None and not key:
            raise CandidateError(
                "eval_candidate_credentials_missing",
                "the environment variable with the key is not set",
                where=f"candidates[{candidate.alias}].api.api_key_env",
                expected=f"a key in {name}",
                actual="unset" if key is None else "empty",
                recovery=f"export {name}=..., or write `api_key_env: null` for an "
                "endpoint without a key",
            )
        if key is not None and not is_sendable(key):
            raise CandidateError(
                "eval_candidate_credentials_missing",
                "the API key cannot be sent in a header",
                where=f"candidates[{candidate.alias}].api.api_key_env",
                expected=f"printable ASCII in {name}",
                actual="other characters (not shown)",
                recovery=f"export {name}=... again, without line ends and quotes",
            )
    return keys
