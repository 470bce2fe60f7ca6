"""`endpoint_config.yaml`: an oracle behind HTTPS, checked but never contacted here.

The keys are closed (`spec/executable-evaluator.md` 1.6). Secrets are only named:
the file says which environment variable or reference holds them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from harness.benchmark.manifest import inside
from harness.benchmark.problems import PackFile, shown
from harness.canonical import Json, is_content_hash
from harness.strict_yaml import YamlPath

PROTOCOL: Final = "bfcl-oracle-http-v1"
ATTESTATION: Final = "bfcl-endpoint-conformance-v1"
_DIGESTS: Final = ("principal_digest", "permission_digest")
_CONTEXT_DIGEST: Final = "authorization_context_digest"
_RESERVED_HEADERS: Final = frozenset({"authorization", "host", "content-length"})
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


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
    parts = urlsplit(url) if isinstance(url, str) else None
    if (
        parts is None
        or parts.scheme != "https"
        or not parts.hostname
        or parts.username is not None
        or parts.query
        or parts.fragment
    ):
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
    file.text(value, "bearer_token_ref", path)
    headers = value.get("headers", {})
    if not isinstance(headers, dict):
        file.problem((*path, "headers"), "not an object", actual=shown(headers))
        return
    for name in headers:
        file.text(headers, name, (*path, "headers"))
        if name.lower() in _RESERVED_HEADERS:
            file.problem((*path, "headers", name), f"header {name} is reserved")


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
