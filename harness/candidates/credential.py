"""The API key, in the one place that holds it.

It leaves only as the Authorization header of a request. It has no text form, cannot
be pickled, and no record, error or diagnostic is built from it.
"""

from __future__ import annotations

import re
from typing import NoReturn

from harness.errors import CandidateError

SHORTEST_SECRET = 8
"""Local servers are given dummy keys such as `EMPTY`; shorter is no secret."""

_ESCAPED = re.compile(rb'\\+u00([2-7][0-9A-Fa-f])|\\+(["/])')


class Credential:
    """A bearer key, or none."""

    __slots__ = ("__secret",)

    def __init__(self, api_key: str | None) -> None:
        if api_key is not None and not is_sendable(api_key):
            raise CandidateError(
                "eval_candidate_credentials_missing",
                "the API key cannot be sent in a header",
                expected="printable ASCII, at least one character",
                actual="an empty key or one with other characters (not shown)",
                recovery="set the variable that api.api_key_env names, or null",
            )
        self.__secret = None if api_key is None else api_key.encode("ascii")

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the Authorization header, or nothing without a key."""
        if self.__secret is None:
            return []
        return [(b"authorization", b"Bearer " + self.__secret)]

    def is_in(self, data: bytes) -> bool:
        """Tell whether bytes spell the key, JSON escapes at any depth included."""
        secret = self.__secret
        if secret is None or len(secret) < SHORTEST_SECRET:
            return False
        if secret in data:
            return True
        return b"\\" in data and secret in _ESCAPED.sub(_plain, data)

    def may_begin_in(self, data: bytes) -> bool:
        """Tell whether cut bytes hold the key or enough of its beginning."""
        secret = self.__secret
        if secret is None or len(secret) < SHORTEST_SECRET:
            return False
        return self.is_in(data) or secret[:SHORTEST_SECRET] in _ESCAPED.sub(
            _plain, data
        )

    def __repr__(self) -> str:
        return "Credential(not shown)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a credential is never copied or written")


def is_sendable(api_key: str) -> bool:
    """Tell whether a key can stand in a header: printable ASCII, and not empty."""
    return bool(api_key) and api_key.isascii() and api_key.isprintable()


def _plain(found: re.Match[bytes]) -> bytes:
    return found[2] or bytes((int(found[1], 16),))
