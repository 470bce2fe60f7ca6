"""Credentials of an endpoint oracle: named by the pack, granted by the operator.

A pack may name any variable or file; it gets only what the policy file of
`BFCL_ENDPOINT_CREDENTIAL_POLICY` grants to exactly its address. Secrets have no text
form, stand in no message, and leave only towards the worker that sends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from harness.benchmark.endpoint_config import (
    EndpointConfig,
    normal_reference,
    normal_url,
)
from harness.canonical import Json
from harness.errors import UsageError
from harness.regular_file import open_regular_file, read_regular_file
from harness.strict_json import StrictJsonError, decode_document

POLICY_VARIABLE: Final = "BFCL_ENDPOINT_CREDENTIAL_POLICY"
POLICY_VERSION: Final = "bfcl-endpoint-credential-policy-v1"
LARGEST_SECRET_BYTES: Final = 16 << 10
_CODE: Final = "eval_oracle_credentials_refused"


class EndpointCredentials:
    """Headers that prove who asks, and the secrets that they are made of."""

    __slots__ = ("__headers", "__secrets")

    def __init__(self, headers: dict[str, str], secrets: tuple[str, ...]) -> None:
        self.__headers = headers
        self.__secrets = secrets

    def introduction(self) -> dict[str, Json]:
        """Return the one message that carries them, to a worker of the client."""
        return {
            "op": "open",
            "headers": dict(self.__headers),
            "secrets": list(self.__secrets),
        }

    def __repr__(self) -> str:
        return "EndpointCredentials(not shown)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials are never copied or written")


def resolve_credentials(
    endpoint: EndpointConfig, environment: Mapping[str, str]
) -> EndpointCredentials:
    """Read what the pack names and the policy grants; raise UsageError."""
    if not endpoint.references:
        return EndpointCredentials({}, ())
    granted = _granted(endpoint.base_url, environment)
    missing = [name for name in endpoint.references if name not in granted]
    if missing:
        raise _refused(
            "the operator's policy does not grant what the pack asks for",
            where=f"{POLICY_VARIABLE}, base_url {endpoint.base_url}",
            expected=f"a grant of {', '.join(missing)}",
            actual=f"grants of {', '.join(sorted(granted)) or 'nothing'}",
            recovery="grant it if this endpoint may have it; never because a pack asks",
        )
    secrets = {name: _secret(name, environment) for name in endpoint.references}
    headers = {name: secrets[reference] for name, reference in endpoint.headers.items()}
    if endpoint.bearer is not None:
        headers["Authorization"] = f"Bearer {secrets[endpoint.bearer]}"
    return EndpointCredentials(headers, tuple(secrets.values()))


def _granted(base_url: str, environment: Mapping[str, str]) -> set[str]:
    """Return the references that the policy grants to one address."""
    named = environment.get(POLICY_VARIABLE)
    if not named:
        raise _refused(
            "the pack names credentials, and there is no policy that grants any",
            where=POLICY_VARIABLE,
            expected=f"the path of a file with {base_url} in its grants",
            actual="unset" if named is None else "empty",
            recovery="write the policy, and export its path",
        )
    try:
        policy = decode_document(read_regular_file(Path(named)))
    except (OSError, StrictJsonError) as error:
        detail = error.strerror if isinstance(error, OSError) else str(error)
        raise _broken("the file cannot be read as strict JSON", str(detail)) from None
    granted: set[str] = set()
    for address, references in _grants(policy):
        if address == base_url:
            granted |= references
    return granted


def _grants(policy: Json) -> list[tuple[str, set[str]]]:
    if not isinstance(policy, dict) or policy.keys() != {"schema_version", "grants"}:
        raise _broken("another shape", "expected schema_version and grants alone")
    if policy["schema_version"] != POLICY_VERSION:
        raise _broken("another schema_version", f"expected {POLICY_VERSION}")
    grants = policy["grants"]
    if not isinstance(grants, list):
        raise _broken("grants is no list", type(grants).__name__)
    return [_grant(index, grant) for index, grant in enumerate(grants)]


def _grant(index: int, grant: Json) -> tuple[str, set[str]]:
    keys = {"base_url", "credential_references"}
    where = f"grants[{index}]"
    if not isinstance(grant, dict) or grant.keys() != keys:
        raise _broken(f"{where} has another shape", f"expected {sorted(keys)} alone")
    references = grant["credential_references"]
    if not isinstance(references, list) or not all(
        isinstance(item, str) for item in references
    ):
        raise _broken(f"{where} has no list of references", "expected texts")
    try:
        return normal_url(str(grant["base_url"])), set(
            map(normal_reference, references)
        )
    except ValueError:
        raise _broken(
            f"{where} names no https address, or what is no reference",
            "expected env:NAME, NAME or file:/PATH; the value is not shown",
        ) from None


def _secret(reference: str, environment: Mapping[str, str]) -> str:
    kind, _, name = reference.partition(":")
    secret = environment.get(name) if kind == "env" else _read(name)
    if not secret or not (secret.isascii() and secret.isprintable()):
        raise _refused(
            "a granted credential cannot be used",
            where=reference,
            expected="printable ASCII, at least one character",
            actual="nothing" if not secret else "other characters (not shown)",
            recovery="set it, or take the reference out of the pack",
        )
    return secret


def _read(path: str) -> str | None:
    try:
        with open_regular_file(Path(path)) as stream:
            data = stream.read(LARGEST_SECRET_BYTES)
    except OSError:
        return None
    return data.decode("utf-8", "replace").rstrip("\r\n")


def _broken(problem: str, actual: str) -> UsageError:
    return _refused(
        f"the credential policy: {problem}",
        where=POLICY_VARIABLE,
        expected=f"schema_version {POLICY_VERSION}, and grants of base_url and "
        "credential_references",
        actual=actual,
        recovery="correct the file",
    )


def _refused(
    problem: str, *, where: str, expected: str, actual: str, recovery: str
) -> UsageError:
    return UsageError(
        _CODE,
        problem,
        where=where,
        expected=expected,
        actual=actual,
        recovery=recovery,
    )
