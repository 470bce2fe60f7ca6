"""`endpoint_config.yaml`: an oracle behind HTTPS, checked but never contacted here.

The keys are closed (`spec/executable-evaluator.md` 1.6). Secrets are only named: a
credential reference is `env:NAME` (a bare NAME means the same) or `file:/PATH`, and
what it leads to is read by nobody but the client of the oracle, if the operator's
policy lets it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from harness.benchmark.manifest import inside
from harness.benchmark.problems import PackFile, Problems, read_yaml, shown
from harness.canonical import Json, is_content_hash
from harness.strict_yaml import YamlPath

PROTOCOL: Final = "bfcl-oracle-http-v1"
ATTESTATION: Final = "bfcl-endpoint-conformance-v1"
_DIGESTS: Final = ("principal_digest", "permission_digest")
_CONTEXT_DIGEST: Final = "authorization_context_digest"
_RESERVED_HEADERS: Final = frozenset(
    {
        *("authorization", "host", "content-length"),
        *("accept", "accept-encoding", "connection", "content-type", "expect"),
        *("transfer-encoding", "upgrade", "user-agent"),
    }
)
DEFAULT_LIMIT_BYTES: Final = 10 << 20
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_REFERENCE = re.compile(
    r"(?:env:)?(?P<variable>[A-Z][A-Z0-9_]{0,63})|(?P<file>file:/.+)"
)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HTTPS_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """An endpoint oracle as its pack declares it; nothing here is secret."""

    base_url: str
    """Normal form: lower-case host, no default port, no slash at the end."""
    expected: dict[str, str]
    """What the endpoint must say of itself, `protocol_version` included."""
    bearer: str | None
    """The reference of the bearer token, in normal form."""
    headers: dict[str, str]
    """Header name to credential reference, in normal form."""
    attestation: str | None
    """The digest that the conformance document must have; Gold needs one."""
    ca_bundle: Path | None
    """The only authorities to trust; None means the system's."""
    max_request_bytes: int
    max_response_bytes: int

    @property
    def host(self) -> str:
        """The host to connect to, without brackets."""
        return str(urlsplit(self.base_url).hostname)

    @property
    def port(self) -> int:
        """The port to connect to."""
        return urlsplit(self.base_url).port or _HTTPS_PORT

    @property
    def path_prefix(self) -> str:
        """What stands before every route."""
        return urlsplit(self.base_url).path

    @property
    def references(self) -> tuple[str, ...]:
        """Every credential reference, in normal form and sorted."""
        named = {*self.headers.values(), *([self.bearer] if self.bearer else [])}
        return tuple(sorted(named))

    def metadata(self) -> dict[str, Json]:
        """Return what a publication states about its endpoint."""
        return {
            **self.expected,
            "base_url": self.base_url,
            "attestation": None
            if self.attestation is None
            else {"kind": ATTESTATION, "digest": self.attestation},
        }


def load_endpoint(path: Path, root: Path) -> EndpointConfig:
    """Read and check an endpoint file of a pack; raise PackError."""
    problems = Problems()
    file = read_yaml(path, problems)
    if file is not None:
        check_endpoint(file, root)
    problems.raise_any()
    if file is None:
        raise AssertionError("an unreadable file without a problem")
    return _config(file.value, root)


def normal_url(url: str) -> str:
    """Return the normal form of an https address; ValueError if it is none."""
    parts = urlsplit(url)
    if (
        parts.scheme != "https"
        or not parts.hostname
        or parts.username is not None
        or parts.query
        or parts.fragment
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        raise ValueError(url)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, _HTTPS_PORT) else f":{parts.port}"
    return f"https://{host}{port}{parts.path.rstrip('/')}"


def normal_reference(reference: str) -> str:
    """Return the normal form of a credential reference; ValueError if it is none."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ValueError(reference)
    return match["file"] or f"env:{match['variable']}"


def _config(value: dict[str, Json], root: Path) -> EndpointConfig:
    auth = value.get("auth", {})
    bearer = auth.get("bearer_token_env") or auth.get("bearer_token_ref")
    bundle = value.get("tls", {}).get("ca_bundle_path")
    attestation = value.get("attestation")
    return EndpointConfig(
        base_url=normal_url(value["base_url"]),
        expected={"protocol_version": PROTOCOL, **value["expected"]},
        bearer=None if bearer is None else normal_reference(bearer),
        headers={
            name: normal_reference(reference)
            for name, reference in auth.get("headers", {}).items()
        },
        attestation=None if attestation is None else attestation["expected_digest"],
        ca_bundle=None if bundle is None else root / bundle,
        max_request_bytes=value.get("max_request_bytes", DEFAULT_LIMIT_BYTES),
        max_response_bytes=value.get("max_response_bytes", DEFAULT_LIMIT_BYTES),
    )


def check_endpoint(file: PackFile, root: Path) -> dict[str, Path]:
    """Report every problem; return files to declare (`endpoint_ca_bundle`)."""
    value = file.value
    optional = {"auth", "attestation", "tls", "max_request_bytes", "max_response_bytes"}
    if not file.closed(
        value, (), {"protocol_version", "base_url", "expected"}, optional
    ):
        return {}
    if value["protocol_version"] != PROTOCOL:
        file.problem(
            ("protocol_version",),
            "unknown protocol",
            expected=PROTOCOL,
            actual=shown(value["protocol_version"]),
        )
    _check_url(file, value["base_url"])
    _check_expected(file, value["expected"], with_credentials="auth" in value)
    if "auth" in value:
        _check_auth(file, value["auth"])
    if "attestation" in value:
        _check_attestation(file, value["attestation"])
    for name in ("max_request_bytes", "max_response_bytes"):
        size = value.get(name, 1)
        if type(size) is not int or size < 1:
            file.problem((name,), f"{name} is no positive integer", actual=shown(size))
    return _ca_bundle(file, value.get("tls", {}), root)


def _check_url(file: PackFile, url: Json) -> None:
    try:
        normal_url(url if isinstance(url, str) else "")
    except ValueError:
        file.problem(
            ("base_url",),
            "not a plain https address",
            expected="https, without user, query and fragment",
            actual=shown(url),
        )


def _check_expected(file: PackFile, value: Json, *, with_credentials: bool) -> None:
    path: YamlPath = ("expected",)
    required = {"oracle_id", "oracle_version", "content_digest"}
    if not file.closed(value, path, required, {*_DIGESTS, _CONTEXT_DIGEST}):
        return
    for name in ("oracle_id", "oracle_version"):
        file.text(value, name, path)
    for name in ("content_digest", *_DIGESTS, _CONTEXT_DIGEST):
        if name in value and not is_content_hash(value[name]):
            file.problem((*path, name), "not sha256: and 64 hex digits")
    if (
        with_credentials
        and _CONTEXT_DIGEST in value
        and not value.keys() >= {*_DIGESTS}
    ):
        file.problem(
            (*path, _CONTEXT_DIGEST),
            f"{_CONTEXT_DIGEST} needs {' and '.join(_DIGESTS)} beside credentials",
        )


def _check_auth(file: PackFile, value: Json) -> None:
    path: YamlPath = ("auth",)
    names = {"bearer_token_env", "bearer_token_ref", "headers"}
    if not file.closed(value, path, set(), names):
        return
    if {"bearer_token_env", "bearer_token_ref"} <= value.keys():
        file.problem(path, "bearer_token_env and bearer_token_ref exclude each other")
    variable = file.text(value, "bearer_token_env", path)
    if variable and not _VARIABLE.fullmatch(variable):
        file.problem((*path, "bearer_token_env"), "not the name of a variable")
    _check_reference(file, value, "bearer_token_ref", path)
    headers = value.get("headers", {})
    if not isinstance(headers, dict):
        file.problem((*path, "headers"), "not an object", actual=shown(headers))
        return
    for name in headers:
        _check_reference(file, headers, name, (*path, "headers"))
        if name.lower() in _RESERVED_HEADERS:
            file.problem((*path, "headers", name), f"header {name} is reserved")
        elif not _HEADER.fullmatch(name):
            file.problem((*path, "headers", name), f"{name!r} is no header name")


def _check_reference(
    file: PackFile, value: dict[str, Json], key: str, path: YamlPath
) -> None:
    reference = file.text(value, key, path)
    if reference and not _REFERENCE.fullmatch(reference):
        file.problem(
            (*path, key),
            "not a credential reference",
            expected="env:NAME, NAME or file:/PATH; never the secret itself",
        )


def _check_attestation(file: PackFile, value: Json) -> None:
    path: YamlPath = ("attestation",)
    if not file.closed(value, path, {"kind", "expected_digest"}, set()):
        return
    if value["kind"] != ATTESTATION:
        file.problem((*path, "kind"), "unknown attestation", expected=ATTESTATION)
    if not is_content_hash(value["expected_digest"]):
        file.problem((*path, "expected_digest"), "not sha256: and 64 hex digits")


def _ca_bundle(file: PackFile, value: Json, root: Path) -> dict[str, Path]:
    path: YamlPath = ("tls",)
    if not file.closed(value, path, set(), {"ca_bundle_path"}):
        return {}
    name = file.text(value, "ca_bundle_path", path)
    if not name:
        return {}
    found = Path(name)
    if not found.is_absolute():
        relative = inside(file, root, name, (*path, "ca_bundle_path"))
        if relative is None:
            return {}
        found = relative
    if not found.is_file() or found.is_symlink():
        file.problem((*path, "ca_bundle_path"), f"{name} is no plain file")
        return {}
    return {"endpoint_ca_bundle": found}
