"""The key of an endpoint, read from the environment before anything is sent."""

from __future__ import annotations

import os

from harness.candidates.credential import is_sendable
from harness.errors import CandidateError


def api_key(variable: str | None, *, where: str) -> str | None:
    """Read a key; None for an endpoint without one. `where` names the config's key.

    Raises CandidateError (`eval_candidate_credentials_missing`) for a variable that is
    unset, empty, or holds what no header can carry.
    """
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise CandidateError(
            "eval_candidate_credentials_missing",
            "the environment variable with the key is not set",
            where=where,
            expected=f"a key in {variable}",
            actual="unset" if key is None else "empty",
            recovery=f"export {variable}=..., or write `api_key_env: null` for an "
            "endpoint without a key",
        )
    if not is_sendable(key):
        raise CandidateError(
            "eval_candidate_credentials_missing",
            "the API key cannot be sent in a header",
            where=where,
            expected=f"printable ASCII in {variable}",
            actual="other characters (not shown)",
            recovery=f"export {variable}=... again, without line ends and quotes",
        )
    return key
